"""In how many partitions a queue is: in one, unless nodes share it out."""

from typing import Any, Final

from headway.runtime.listing import ShowQueue
from headway.server.call import Call, answer
from headway.server.plans import Plan, ask
from headway.server.problems import Refused
from headway.server.routing import Route
from headway.server.scopes import Verb
from headway.wire import queues as wire


def show(call: Call) -> Plan:
    """The partitions of a queue, its home first, and which of them are leaving it."""
    return ask(ShowQueue(call.queue), lambda _: _told(call))


def widen(call: Call) -> Plan:
    """Give a queue more partitions, so that several nodes serve it at once, or fewer.

    Its limits and its length are divided between them, so that all together never pass
    them. Partitions that leave take no new jobs from now on, and go once they hold none in
    any state. Only nodes of a cluster have partitions to give.
    """
    body: wire.Width = call.body
    if body.count != 1:
        text = "this server has one partition: it is no node of a cluster"
        raise Refused("bad_value", text, "count")
    return ask(ShowQueue(call.queue), lambda _: _told(call))


def _told(call: Call) -> Plan:
    return answer(wire.QueuePlaces([call.ids.partition]))


def _route(method: str, handler: Any, verb: Verb, **more: Any) -> Route:
    return Route(
        method=method,
        path="/v1/queues/{queue}/partitions",
        handler=handler,
        verb=verb,
        tag="queues",
        answers={200: wire.QueuePlaces},
        **more,
    )


ROUTES: Final = (
    _route("GET", show, Verb.READ, problems=("unknown_queue",)),
    _route(
        "PUT",
        widen,
        Verb.MANAGE,
        body=wire.Width,
        problems=("unknown_queue", "wrong_state"),
        example={"count": 1},
    ),
)
