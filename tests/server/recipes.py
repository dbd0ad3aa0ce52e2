"""How to bring a route to a decision whose queue is not in its path."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.server.process import Served

QUEUE = "default"


class Target(NamedTuple):
    """A request for something that is on QUEUE."""

    path: str
    body: object = None


class Recipe(NamedTuple):
    make: Callable[[Served, str], Target]
    """Gets a server and a token that may do everything."""
    hidden: int = 403
    """What a bearer is told who may do this, but on another queue."""


def job(served: Served, admin: str) -> str:
    body = {"kind": "mail", "payload": 1}
    path = f"/v1/queues/{QUEUE}/jobs"
    accepted = served.ask("POST", path, body, token=admin).json
    return str(accepted["jobs"][0]["id"])


def leased(served: Served, admin: str) -> str:
    """The token of a lease."""
    job(served, admin)
    body = {"queues": [QUEUE], "lease": "1h"}
    found = served.ask("POST", "/v1/lease", body, token=admin).json
    return str(found["jobs"][0]["token"])


def record(served: Served, admin: str) -> str:
    job(served, admin)
    return str(served.ask("GET", "/record", token=admin).json["id"])


def on_job(path: str) -> Recipe:
    return Recipe(lambda served, admin: Target(path + job(served, admin)), hidden=404)


def by_lease(path: str, body: Callable[[str], dict[str, Any]]) -> Recipe:
    return Recipe(lambda served, admin: Target(path, body(leased(served, admin))))


RECIPES = {
    "GET /v1/jobs/{id}": on_job("/v1/jobs/"),
    "DELETE /v1/jobs/{id}": on_job("/v1/jobs/"),
    "GET /v1/jobs/{id}/why": Recipe(
        lambda served, admin: Target(f"/v1/jobs/{job(served, admin)}/why"), hidden=404
    ),
    "POST /v1/lease": Recipe(lambda *_: Target("/v1/lease", {"queues": [QUEUE]})),
    "POST /v1/ack": by_lease("/v1/ack", lambda token: {"tokens": [token]}),
    "POST /v1/extend": by_lease("/v1/extend", lambda token: {"tokens": [token]}),
    "POST /v1/release": by_lease("/v1/release", lambda token: {"tokens": [token]}),
    "POST /v1/nack": by_lease("/v1/nack", lambda token: {"jobs": [{"token": token}]}),
    "POST /v1/wait": by_lease(
        "/v1/wait",
        lambda token: {"token": token, "reply_key": token[:40], "timeout": "1h"},
    ),
    "POST /record": Recipe(lambda *_: Target("/record", {"payload": "x"})),
    "GET /record": Recipe(lambda *_: Target("/record")),
    "POST /ack/{id}": Recipe(
        lambda served, admin: Target(f"/ack/{record(served, admin)}")
    ),
    "POST /nack/{id}": Recipe(
        lambda served, admin: Target(f"/nack/{record(served, admin)}")
    ),
}
