"""Traces and metrics by OpenTelemetry: `app.use(Telemetry())`.

An enqueue is a span whose context travels in the headers of its jobs, so that a run,
wherever it happens, belongs to the same trace. Names are in `otel_names`.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from msgspec import UNSET

from headway.integrations import otel_names as names
from headway.wire.work import Leased
from headway.worker.hooks import Middleware, Sending, Settlement

try:
    from opentelemetry import metrics, propagate, trace
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, SpanContext, SpanKind
except ImportError as missing:
    text = "OpenTelemetry is not installed: pip install headway[otel]"
    raise ImportError(text) from missing

SCOPE: Final = "headway"
HEADER_CHARACTERS_MAX: Final = 4_096
"""Of what travels with a job; baggage may be longer, and is then left behind."""
OPEN_MAX: Final = 20_000
"""Runs that are remembered until the queue has heard of them."""

Attributes = dict[str, Any]


class Telemetry(Middleware):
    """Spans for enqueue, run and settlement, and the four metrics of messaging."""

    def __init__(
        self,
        *,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        is_joined: bool = True,
    ) -> None:
        """A run is part of the trace that enqueued it, or, not joined, only links to it."""
        self._tracer = trace.get_tracer(SCOPE, tracer_provider=tracer_provider)
        self._is_joined = is_joined
        meter = metrics.get_meter(SCOPE, meter_provider=meter_provider)
        self._sent = meter.create_counter(names.SENT, "{message}")
        self._consumed = meter.create_counter(names.CONSUMED, "{message}")
        self._operation = meter.create_histogram(
            names.OPERATION_DURATION,
            "s",
            explicit_bucket_boundaries_advisory=names.SECONDS,
        )
        self._process = meter.create_histogram(
            names.PROCESS_DURATION,
            "s",
            explicit_bucket_boundaries_advisory=names.SECONDS,
        )
        self._open: dict[str, SpanContext] = {}
        """By the token of the lease."""
        self._turn = threading.Lock()

    def enqueue(self, sending: Sending) -> Iterator[None]:
        labels = _labels("enqueue", sending.queue)
        count = len(sending.specs)
        first = sending.specs[0]
        told: Attributes = {**labels, names.OPERATION_TYPE: "send"}
        told[names.KIND] = first.kind
        if count == 1:
            told |= {names.BODY_SIZE: len(first.payload), names.TENANT: first.tenant}
        else:
            told[names.BATCH_COUNT] = count
        span_name = f"enqueue {sending.queue}"
        with self._tracer.start_as_current_span(
            span_name, kind=SpanKind.PRODUCER, attributes=told
        ) as span:
            carried: dict[str, str] = {}
            propagate.inject(carried)
            sending.add_headers(
                {
                    name: value
                    for name, value in carried.items()
                    if len(value) <= HEADER_CHARACTERS_MAX
                }
            )
            with _timed(self._operation, labels):
                yield
            if count == 1:
                span.set_attribute(names.MESSAGE_ID, sending.ids[0])
            self._sent.add(count, labels)

    def run(self, job: Leased) -> Iterator[None]:
        labels = _labels("process", job.queue)
        self._consumed.add(1, labels)
        carried = {} if job.headers is UNSET else job.headers
        sender = propagate.extract(carried, Context())
        origin = trace.get_current_span(sender).get_span_context()
        with self._tracer.start_as_current_span(
            f"process {job.queue}",
            context=sender if self._is_joined else Context(),
            kind=SpanKind.CONSUMER,
            links=[Link(origin)] if origin.is_valid else [],
            attributes={
                **labels,
                names.OPERATION_TYPE: "process",
                names.MESSAGE_ID: job.id,
                names.KIND: job.kind,
                names.TENANT: job.tenant,
                names.ATTEMPT: job.attempt,
            },
        ) as span:
            self._remember(job.token, span.get_span_context())
            with _timed(self._process, labels):
                yield

    def settle(self, settlement: Settlement) -> Iterator[None]:
        with self._turn:
            taken = [self._open.pop(token, None) for token in settlement.tokens]
        told: Attributes = {
            names.SYSTEM: SCOPE,
            names.OPERATION: settlement.verb,
            names.OPERATION_TYPE: "settle",
        }
        labels = {name: told[name] for name in (names.SYSTEM, names.OPERATION)}
        with (
            self._tracer.start_as_current_span(
                settlement.verb,
                context=Context(),
                kind=SpanKind.CLIENT,
                links=[Link(context) for context in taken if context is not None],
                attributes={**told, names.BATCH_COUNT: len(settlement.tokens)},
            ),
            _timed(self._operation, labels),
        ):
            yield

    def _remember(self, token: str, context: SpanContext) -> None:
        with self._turn:
            self._open[token] = context
            if len(self._open) > OPEN_MAX:
                # Of a lease that was lost or given back: nobody will settle it.
                del self._open[next(iter(self._open))]


def _labels(operation: str, queue: str) -> Attributes:
    return {
        names.SYSTEM: SCOPE,
        names.OPERATION: operation,
        names.DESTINATION: queue,
    }


@contextmanager
def _timed(histogram: metrics.Histogram, labels: Attributes) -> Iterator[None]:
    began_s = time.perf_counter()
    failed: Attributes = {}
    try:
        yield
    except BaseException as error:
        failed = {names.ERROR_TYPE: type(error).__qualname__}
        raise
    finally:
        histogram.record(time.perf_counter() - began_s, {**labels, **failed})
