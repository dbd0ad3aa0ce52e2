"""Whether the server lives, whether it serves, and how to speak to it."""

from typing import Any, Final

import msgspec

from headway.runtime.errors import RuntimeFailure
from headway.runtime.views import ReadHistory
from headway.server.call import Call, answer
from headway.server.http.message import Response
from headway.server.plans import Asked, Plan
from headway.server.routing import Route
from headway.server.scopes import Verb


class Health(msgspec.Struct):
    status: str
    """ok, stopping or stopped."""


def livez(call: Call) -> Plan:
    """Whether the process lives."""
    return answer(Health("ok"))


def readyz(call: Call) -> Plan:
    """Whether the partition is served: its owner has just answered."""
    if call.facilities.is_stopping:
        return answer(Health("stopping"), 503)

    def told(answers: list[Any]) -> Plan:
        is_good = not isinstance(answers[0], RuntimeFailure)
        return answer(Health("ok" if is_good else "stopped"), 200 if is_good else 503)

    return Asked([ReadHistory(1, 1)], told)


def openapi(call: Call) -> Plan:
    """This description."""
    return Response(200, call.facilities.describe())


ROUTES: Final = (
    Route(
        method="GET",
        path="/livez",
        handler=livez,
        verb=Verb.OPEN,
        tag="about",
        answers={200: Health},
    ),
    Route(
        method="GET",
        path="/readyz",
        handler=readyz,
        verb=Verb.OPEN,
        tag="about",
        answers={200: Health, 503: Health},
    ),
    Route(
        method="GET",
        path="/openapi.json",
        handler=openapi,
        verb=Verb.OPEN,
        tag="about",
        answers={200: dict[str, Any]},
    ),
)
