"""Numbers for operators and their tools: metrics, and how many workers are wanted."""

from math import ceil
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from headway.core.capacity import START_MS, Wanted
from headway.core.durations import parse_ms
from headway.runtime.views import Autoscale, Measure
from headway.server.call import Call, answer
from headway.server.http.message import Response
from headway.server.metrics import exposition, memory_of_process
from headway.server.plans import Asked, InThread, Plan, ask, good
from headway.server.problems import Refused
from headway.server.routing import Route
from headway.server.scopes import Verb
from headway.wire import operations as wire
from headway.wire.values import Duration, QueueName
from headway.wire.work import QUEUES_MAX

TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
_Names = Annotated[list[QueueName], Meta(min_length=1, max_length=QUEUES_MAX)]


class AutoscaleQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    queues: (
        Annotated[str, Meta(max_length=4_096, pattern="^[A-Za-z0-9._,-]+$")] | None
    ) = None
    """Names with commas between them; left out: all queues."""
    concurrency: Annotated[int, Meta(ge=1, le=100_000)] = 1
    """Jobs that one worker runs at once."""
    start: Duration = START_MS
    """How long a new worker takes to be there."""


def metrics(call: Call) -> Plan:
    """All metrics, in Prometheus' text format."""

    def told(answers: list[Any]) -> Plan:
        measures, wanted = good(answers[0]), good(answers[1])
        over_rate = call.facilities.over_rate()

        def written() -> Plan:
            body = exposition(
                measures,
                default_queue=call.facilities.default_queue,
                memory=memory_of_process(),
                wanted=wanted,
                over_rate=over_rate,
            )
            return Response(200, body, TEXT.encode())

        # Of thousands of lanes it is megabytes, which nobody else should wait for.
        return InThread(written)

    return Asked([Measure(), Autoscale()], told)


def autoscale(call: Call) -> Plan:
    """How many workers some queues want to keep their promises, and why.

    A scaler can take `workers` as it is, for instance KEDA's metrics-api scaler with
    `valueLocation: workers` and a target value of 1.
    """
    query: AutoscaleQuery = call.query()
    names = None if query.queues is None else _names(query.queues)
    for name in names or (None,):
        call.require(Verb.READ, name)

    def told(wanted: Wanted) -> Plan:
        lanes = [
            wire.LaneWanted(lane.queue, lane.slo_ms, lane.load, lane.backlog)
            for lane in wanted.by_lane
        ]
        workers = ceil(wanted.slots / query.concurrency)
        return answer(
            wire.WorkersWanted(
                workers,
                wanted.slots,
                wanted.reason,
                wanted.load,
                wanted.slots_max,
                lanes,
            )
        )

    return ask(Autoscale(names, parse_ms(query.start, "start")), told)


def _names(text: str) -> tuple[str, ...]:
    try:
        names: list[str] = msgspec.convert(text.split(","), _Names)
    except msgspec.ValidationError as error:
        raise Refused("bad_value", str(error), "queues") from error
    return tuple(dict.fromkeys(names))


ROUTES: Final = (
    Route(
        method="GET",
        path="/metrics",
        handler=metrics,
        verb=Verb.METRICS,
        tag="about",
        answers={200: TEXT},
    ),
    Route(
        method="GET",
        path="/v1/autoscale",
        handler=autoscale,
        verb=Verb.READ,
        is_queue_checked=False,
        tag="operations",
        query=AutoscaleQuery,
        answers={200: wire.WorkersWanted},
        problems=("unknown_queue",),
    ),
)
