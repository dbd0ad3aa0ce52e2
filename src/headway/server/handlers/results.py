"""Results: what became of a job, now or as soon as it has ended."""

from typing import Final

import msgspec

from headway.core.durations import parse_ms
from headway.core.errors import BadValue
from headway.runtime.results import WAIT_MAX_MS, Ended, Watch, none_of
from headway.server.call import Call, answer
from headway.server.plans import Plan, ask
from headway.server.routing import Route
from headway.server.scopes import Verb
from headway.server.shapes import ended
from headway.wire import jobs as wire
from headway.wire.values import Duration


class ResultQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    wait: Duration = 0
    """How long the answer is held back while the job has not ended, at most a minute."""


def result(call: Call) -> Plan:
    """What became of a job that was asked for its result.

    200 once it has ended, with `state` and, if it is done, `value`; 202 while it has not.
    With `wait` the answer is held back until then. A result that is over, or that
    nobody asked for when the job was enqueued, is not found.
    """
    query: ResultQuery = call.query()
    wait_ms = parse_ms(query.wait, "wait")
    if wait_ms > WAIT_MAX_MS:
        raise BadValue("wait", query.wait, "at most a minute")
    seq = call.ids.seq(call.params["id"])

    def seen(found: Ended) -> Plan:
        if not call.bearer.may(Verb.READ, found.queue):
            # Whoever may not read it is told what those are told who ask for nothing.
            raise none_of(seq)
        if found.is_open and wait_ms and not call.facilities.is_stopping:
            return ask(Watch(seq, wait_ms), told)
        return told(found)

    def told(found: Ended) -> Plan:
        return answer(ended(found, call.ids), 202 if found.is_open else 200)

    return ask(Watch(seq), seen)


ROUTES: Final = (
    Route(
        method="GET",
        path="/v1/jobs/{id}/result",
        handler=result,
        verb=Verb.READ,
        is_queue_checked=False,
        tag="jobs",
        query=ResultQuery,
        answers={200: wire.ResultShown, 202: wire.ResultShown},
        problems=("unknown_job",),
    ),
)
