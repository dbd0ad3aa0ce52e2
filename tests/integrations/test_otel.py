"""Traces and metrics of jobs, from whoever enqueues to the worker, by way of a server."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from opentelemetry import baggage, trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import headway
from headway.integrations import otel_names as names
from headway.integrations.otel import Telemetry
from tests.worker.places import ServedPlace, is_empty, until, working

PARENT = "traceparent"


class Seen(NamedTuple):
    """What an app's telemetry has told."""

    spans: InMemorySpanExporter
    reader: InMemoryMetricReader
    tracer: TracerProvider
    meter: MeterProvider

    def telemetry(self, **options: Any) -> Telemetry:
        return Telemetry(
            tracer_provider=self.tracer, meter_provider=self.meter, **options
        )

    def named(self, name: str) -> list[ReadableSpan]:
        found = [span for span in self.spans.get_finished_spans() if span.name == name]
        return sorted(found, key=lambda span: span.start_time or 0)

    def points(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        assert data is not None
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
def seen() -> Iterator[Seen]:
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracer = TracerProvider()
    tracer.add_span_processor(SimpleSpanProcessor(spans))
    meter = MeterProvider([reader])
    yield Seen(spans, reader, tracer, meter)
    tracer.shutdown()
    meter.shutdown()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPlace]:
    with ServedPlace(tmp_path_factory.mktemp("otel") / "data") as found:
        yield found


@pytest.mark.parametrize("is_async", [False, True])
def test_trace_goes_from_the_caller_through_the_queue_into_the_handler(
    place: ServedPlace, seen: Seen, is_async: bool
) -> None:
    queue = f"traced-{is_async}"
    app = headway.App(place.url)
    app.use(seen.telemetry())
    inside: list[int] = []

    def work() -> None:
        inside.append(trace.get_current_span().get_span_context().span_id)

    async def awork() -> None:
        work()

    handler = app.job(queue=queue, kind="work")(awork if is_async else work)
    with seen.tracer.get_tracer("test").start_as_current_span("request") as request:
        job = handler.options(tenant="acme").enqueue()
    with working(app):
        until(is_empty(place, queue))
    (sent,) = seen.named(f"enqueue {queue}")
    (run,) = seen.named(f"process {queue}")
    (settled,) = seen.named("ack")
    trace_id = request.get_span_context().trace_id
    assert [one.context.trace_id for one in (sent, run) if one.context] == [
        trace_id
    ] * 2
    assert sent.parent == request.get_span_context()
    assert run.parent is not None
    assert sent.context is not None
    assert run.context is not None
    assert run.parent.span_id == sent.context.span_id
    assert [link.context.span_id for link in run.links] == [sent.context.span_id]
    assert [link.context.span_id for link in settled.links] == [run.context.span_id]
    assert inside == [run.context.span_id]
    kinds = sent.kind, run.kind, settled.kind
    assert kinds == (SpanKind.PRODUCER, SpanKind.CONSUMER, SpanKind.CLIENT)
    assert dict(sent.attributes or {}) == {
        names.SYSTEM: "headway",
        names.DESTINATION: queue,
        names.OPERATION: "enqueue",
        names.OPERATION_TYPE: "send",
        names.MESSAGE_ID: job,
        names.BODY_SIZE: 2,
        names.KIND: "work",
        names.TENANT: "acme",
    }
    assert dict(run.attributes or {}) == {
        names.SYSTEM: "headway",
        names.DESTINATION: queue,
        names.OPERATION: "process",
        names.OPERATION_TYPE: "process",
        names.MESSAGE_ID: job,
        names.KIND: "work",
        names.TENANT: "acme",
        names.ATTEMPT: 1,
    }


def test_failed_runs_are_errors_and_every_attempt_is_in_the_trace(
    place: ServedPlace, seen: Seen
) -> None:
    app = headway.App(place.url)
    app.use(seen.telemetry())

    @app.job(queue="fails", retry=headway.Fixed(0), attempts=2)
    def work() -> None:
        raise ValueError("bad")

    work.enqueue()
    with working(app):
        until(lambda: place.counts("fails")["dead"] == 1)
    runs = seen.named("process fails")
    assert [run.status.status_code for run in runs] == [StatusCode.ERROR] * 2
    assert [run.events[0].name for run in runs] == ["exception"] * 2
    assert len({run.context.trace_id for run in runs if run.context}) == 1
    (point,) = seen.points(names.PROCESS_DURATION)
    assert (point.count, point.attributes[names.ERROR_TYPE]) == (2, "ValueError")
    assert len(seen.named("nack")) == 2


def test_metrics_count_what_was_sent_and_what_was_run(
    place: ServedPlace, seen: Seen
) -> None:
    app = headway.App(place.url)
    app.use(seen.telemetry())

    @app.job(queue="counted")
    def work(number: int) -> None:
        """Does nothing."""

    work.enqueue_many([(n,) for n in range(5)])
    work.enqueue(6)
    with working(app):
        until(is_empty(place, "counted"))
    (sent,) = seen.points(names.SENT)
    (consumed,) = seen.points(names.CONSUMED)
    (processed,) = seen.points(names.PROCESS_DURATION)
    assert (sent.value, consumed.value, processed.count) == (6, 6, 6)
    operations = {
        point.attributes[names.OPERATION]: point.count
        for point in seen.points(names.OPERATION_DURATION)
    }
    assert operations.keys() == {"enqueue", "ack"}
    assert operations["enqueue"] == 2
    batch, _ = seen.named("enqueue counted")
    assert (batch.attributes or {})[names.BATCH_COUNT] == 5
    acked = sum(
        int(str((span.attributes or {})[names.BATCH_COUNT]))
        for span in seen.named("ack")
    )
    assert acked == 6


def test_refused_enqueue_is_an_error_and_counts_nothing(seen: Seen) -> None:
    app = headway.App("memory:")
    app.use(seen.telemetry())
    work = app.job(kind="work", queue="full")(print)
    with app:
        app.configure(headway.QueueConfig(name="full", max_length=0))
        with pytest.raises(headway.RuleBroken):
            work.enqueue()
    (span,) = seen.named("enqueue full")
    assert span.status.status_code is StatusCode.ERROR
    (point,) = seen.points(names.OPERATION_DURATION)
    assert point.attributes[names.ERROR_TYPE] == "QueueFull"
    assert seen.points(names.SENT) == []


def test_runs_that_are_not_joined_have_a_trace_of_their_own(seen: Seen) -> None:
    app = headway.App("memory:")
    app.use(seen.telemetry(is_joined=False))
    work = app.job(kind="work", queue="q")(lambda: None)
    with app:
        work.enqueue()
        app.work(until_empty=True)
    (sent,), (run,) = seen.named("enqueue q"), seen.named("process q")
    assert run.parent is None
    assert sent.context is not None
    assert [link.context.span_id for link in run.links] == [sent.context.span_id]


def test_job_of_somebody_without_traces_runs_in_a_trace_of_its_own(seen: Seen) -> None:
    app = headway.App("memory:")
    work = app.job(kind="work", queue="q")(lambda: None)
    with app:
        work.options(headers={PARENT: "nonsense"}).enqueue()
        app.use(seen.telemetry())
        app.work(until_empty=True)
    (run,) = seen.named("process q")
    assert run.parent is None
    assert run.links == ()


def test_same_key_is_one_job_whatever_the_trace(seen: Seen) -> None:
    app = headway.App("memory:")
    app.use(seen.telemetry())
    work = app.job(kind="work", queue="q")(lambda: None)
    with app:
        ids = {work.options(key="once").enqueue() for _ in range(3)}
    assert len(ids) == 1


def test_baggage_that_is_too_long_for_a_job_stays_behind(
    place: ServedPlace, seen: Seen
) -> None:
    app = headway.App(place.url)
    app.use(seen.telemetry())
    headers: list[Any] = []

    @app.job(queue="laden")
    def work() -> None:
        headers.append(headway.current_job().headers)

    laden = Context()
    for name in ("one", "two", "three"):
        laden = baggage.set_baggage(name, "x" * 2_000, laden)
    entered = attach(laden)
    try:
        work.enqueue()
    finally:
        detach(entered)
    with working(app):
        until(is_empty(place, "laden"))
    assert [sorted(one) for one in headers] == [[PARENT]]


def test_nobody_pays_for_telemetry_that_is_not_asked_for() -> None:
    code = (
        "import sys, headway, headway.cli.worker, headway.testing;"
        "headway.App('memory:');"
        "print([name for name in sys.modules if 'opentelemetry' in name])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout == "[]\n"


def test_missing_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "import headway.integrations.otel"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "pip install headway[otel]" in run.stderr
