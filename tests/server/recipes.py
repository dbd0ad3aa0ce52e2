"""How to bring a route to a decision whose queue is not in its path."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.server.process import Served

QUEUE = "default"
_numbers = itertools.count()


class Target(NamedTuple):
    """A request for something that is on QUEUE."""

    path: str
    body: object = None


class Recipe(NamedTuple):
    make: Callable[[Served, str], Target]
    """Gets a server and a token that may do everything."""
    hidden: int = 403
    """What a bearer is told who may do this, but on another queue."""


def job(served: Served, admin: str, **more: object) -> str:
    for verb in ("resume", "unblock"):
        served.ask("POST", f"/v1/queues/{QUEUE}/{verb}", token=admin)
    body = {"kind": "mail", "payload": 1, **more}
    path = f"/v1/queues/{QUEUE}/jobs"
    accepted = served.ask("POST", path, body, token=admin).json
    return str(accepted["jobs"][0]["id"])


def started(served: Served, admin: str) -> dict[str, Any]:
    """A job in somebody's hands."""
    job(served, admin)
    body = {"queues": [QUEUE], "lease": "1h"}
    found = served.ask("POST", "/v1/lease", body, token=admin).json
    leased_job: dict[str, Any] = found["jobs"][0]
    return leased_job


def leased(served: Served, admin: str) -> str:
    """The token of a lease."""
    return str(started(served, admin)["token"])


def dead(served: Served, admin: str) -> str:
    found = started(served, admin)
    body = {"jobs": [{"token": found["token"], "bury": True}]}
    assert served.ask("POST", "/v1/nack", body, token=admin).status == 200
    return str(found["id"])


def operation(served: Served, admin: str) -> int:
    """A purge that takes its time."""
    job(served, admin)
    job(served, admin)
    path = f"/v1/queues/{QUEUE}/purge"
    begun = served.ask("POST", path, {"rate": 0.001}, token=admin)
    return int(begun.json["id"])


def indexed(path: str) -> Callable[[Served, str], Target]:
    """What the index answers, once it is there."""

    def make(served: Served, admin: str) -> Target:
        target = path.replace("{id}", job(served, admin))
        served.until(200, target, admin)
        return Target(target)

    return make


def record(served: Served, admin: str) -> str:
    job(served, admin)
    return str(served.ask("GET", "/record", token=admin).json["id"])


def on_job(path: str) -> Recipe:
    return Recipe(lambda served, admin: Target(path + job(served, admin)), hidden=404)


def by_lease(path: str, body: Callable[[str], dict[str, Any]]) -> Recipe:
    return Recipe(lambda served, admin: Target(path, body(leased(served, admin))))


def staged(served: Served, admin: str) -> str:
    """The path of a write that has a chunk for QUEUE."""
    path = f"/v1/writes/w{next(_numbers)}"
    chunk = f"{path}/chunks/0/a/0?queue={QUEUE}"
    assert served.ask("PUT", chunk, [{"kind": "k"}], token=admin).status == 200
    return path


def published(served: Served, admin: str) -> Target:
    winners = [{"partition": 0, "attempt": "a", "chunks": 1}]
    path = f"{staged(served, admin)}/publish"
    return Target(path, {"winners": winners, "count": 1})


RECIPES = {
    "GET /v1/jobs/{id}": on_job("/v1/jobs/"),
    "DELETE /v1/jobs/{id}": on_job("/v1/jobs/"),
    "GET /v1/jobs/{id}/why": Recipe(
        lambda served, admin: Target(f"/v1/jobs/{job(served, admin)}/why"), hidden=404
    ),
    "GET /v1/jobs/{id}/result": Recipe(
        lambda served, admin: Target(
            f"/v1/jobs/{job(served, admin, result='1h')}/result"
        ),
        hidden=404,
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
    "POST /v1/jobs/{id}/redrive": Recipe(
        lambda served, admin: Target(f"/v1/jobs/{dead(served, admin)}/redrive"),
        hidden=404,
    ),
    "GET /v1/jobs": Recipe(indexed(f"/v1/jobs?queue={QUEUE}")),
    "GET /v1/jobs/{id}/timeline": Recipe(indexed("/v1/jobs/{id}/timeline"), hidden=404),
    "GET /v1/queues": Recipe(lambda *_: Target("/v1/queues"), hidden=200),
    "GET /v1/schedules": Recipe(lambda *_: Target("/v1/schedules"), hidden=200),
    "GET /v1/operations": Recipe(lambda *_: Target("/v1/operations"), hidden=200),
    "GET /v1/operations/{number}": Recipe(
        lambda served, admin: Target(f"/v1/operations/{operation(served, admin)}"),
        hidden=404,
    ),
    "POST /v1/operations/{number}/stop": Recipe(
        lambda served, admin: Target(f"/v1/operations/{operation(served, admin)}/stop"),
        hidden=404,
    ),
    "PUT /v1/writes/{id}/chunks/{partition}/{attempt}/{number}": Recipe(
        lambda served, admin: Target(
            f"{staged(served, admin)}/chunks/1/a/0?queue={QUEUE}", [{"kind": "k"}]
        )
    ),
    "POST /v1/writes/{id}/publish": Recipe(published, hidden=404),
    "GET /v1/writes/{id}": Recipe(
        lambda served, admin: Target(staged(served, admin)), hidden=404
    ),
    "DELETE /v1/writes/{id}": Recipe(
        lambda served, admin: Target(staged(served, admin)), hidden=404
    ),
    "GET /v1/running": Recipe(lambda *_: Target(f"/v1/running?queue={QUEUE}")),
    "GET /v1/workers": Recipe(lambda *_: Target(f"/v1/workers?queue={QUEUE}")),
    "GET /v1/acts": Recipe(lambda *_: Target(f"/v1/acts?queue={QUEUE}")),
    "GET /v1/ranking": Recipe(lambda *_: Target("/v1/ranking"), hidden=200),
    "GET /v1/me": Recipe(lambda *_: Target("/v1/me"), hidden=200),
    "GET /v1/live": Recipe(lambda *_: Target("/v1/live"), hidden=200),
    "GET /v1/trends": Recipe(lambda *_: Target("/v1/trends"), hidden=200),
    "GET /v1/autoscale": Recipe(lambda *_: Target(f"/v1/autoscale?queues={QUEUE}")),
    "POST /record": Recipe(lambda *_: Target("/record", {"payload": "x"})),
    "GET /record": Recipe(lambda *_: Target("/record")),
    "POST /ack/{id}": Recipe(
        lambda served, admin: Target(f"/ack/{record(served, admin)}")
    ),
    "POST /nack/{id}": Recipe(
        lambda served, admin: Target(f"/nack/{record(served, admin)}")
    ),
}
