"""The log says what happens, and nothing that callers keep to themselves."""

import asyncio
import io
import json
import socket
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from headway.runtime.errors import OwnerStopped
from headway.runtime.owner import Ask
from headway.search.finder import Finder
from headway.server.acts import Acts
from headway.server.app import App
from headway.server.call import Call, Facilities
from headway.server.callbacks import CallbackFile, Callbacks
from headway.server.desk import Desk
from headway.server.guard import Guard
from headway.server.http.message import Request, Response
from headway.server.ids import Ids
from headway.server.log import Watcher
from headway.server.members import Alone
from headway.server.past import Past
from headway.server.plans import Plan
from headway.server.problems import of_error
from headway.server.pulse import Pulse
from headway.server.routing import Route, Router
from headway.server.scopes import Bearer, Verb
from headway.server.truth import InFile
from headway.server.writes import Writes
from tests.server.process import PATIENCE_S, Serve, Served, make_token

CANARY = "canary-7f3a91"


class NoLink:
    """A way to an owner that nobody goes."""

    def submit(self, ask: Ask) -> Future[Any]:
        raise OwnerStopped("there is none")

    def close(self) -> None: ...


class Open:
    is_required = False

    def find(self, secret: bytes) -> Bearer | None:
        return None


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def thrown(secret: str) -> Exception:
    """An error with a secret in its text, its cause and its frame."""
    known: dict[str, str] = {}
    try:
        try:
            known[secret] += secret
        except KeyError as cause:
            raise ValueError(f"bad {secret}") from cause
    except ValueError as error:
        return error
    raise AssertionError


def plant(served: Served, admin: str) -> list[str]:
    """Sends secrets in every way there is; those the server itself made are told."""
    path = f"/v1/queues/{CANARY}-queue/jobs"
    body = {"kind": "mail", "payload": {"key": f"{CANARY}-payload"}}
    key = f"{CANARY}-idempotency"
    made = served.ask("POST", path, body, token=admin, idempotency_key=key)
    assert made.status == 201
    lease = {"queues": [f"{CANARY}-queue"], "worker": f"{CANARY}-worker"}
    (job,) = served.ask("POST", "/v1/lease", lease, token=admin).json["jobs"]
    acked = served.ask("POST", "/v1/ack", {"tokens": [job["token"]]}, token=admin)
    assert acked.json["stale"] == []
    served.ask("POST", "/record", {"payload": f"{CANARY}-record"}, token=admin)
    record = served.ask("GET", "/record", token=admin).json["id"]
    assert served.ask("POST", f"/ack/{record}", token=admin).status == 200
    reply = f"/v1/queues/{CANARY}-queue/replies/{CANARY}-reply"
    assert served.ask("POST", reply, {"payload": 1}, token=admin).status == 200
    served.ask("GET", f"/livez?token={admin}&x={CANARY}-query")
    served.ask("GET", f"/{CANARY}-path?{admin}")
    served.ask("GET", f"/v1/jobs/{CANARY}-id", token=admin)
    served.ask("POST", path, b'{"' + CANARY.encode(), token=admin)
    served.ask("POST", path, {CANARY: 1}, token=admin)
    served.ask("GET", "/record", authorization=f"Basic {CANARY}-basic")
    served.ask("GET", "/record", token=f"{CANARY}-unknown")
    served.ask("GET", "/livez", cookie=f"{CANARY}-cookie", host=f"{CANARY}.example")
    served.ask("POST", path, body, token=admin, origin=f"http://{CANARY}.example")
    for text in (f"{CANARY} / {CANARY}", f"GET /{CANARY} HTTP/1.1\r\n{CANARY}"):
        with socket.create_connection(served.place, timeout=PATIENCE_S) as client:
            client.sendall(text.encode() + b"\r\n\r\n")
            assert client.makefile("rb").readline().startswith(b"HTTP/1.1 400 ")
    return [job["token"], record]


def test_planted_secrets_are_in_no_line_of_the_most_talkative_log(
    serve: Serve, tmp_path: Path
) -> None:
    admin = make_token(tmp_path / "data", "boss", "admin")
    served = serve("--log-level", "debug")
    secrets = [admin, admin[3:], CANARY, *plant(served, admin)]
    assert served.stop() == 0
    log = served.log()
    for secret in secrets:
        assert secret not in log
    events = served.events()
    assert [events[0]["event"], *(event["event"] for event in events[-2:])] == [
        "started",
        "stopping",
        "stopped",
    ]
    access = [event for event in events if event["event"] == "answered"]
    assert len(access) >= 15
    fields = {"at", "level", "event", "method", "route", "status", "ms", "bytes"}
    for event in access:
        assert set(event) == fields | {"bearer"}
        assert event["level"] == "debug"
    told = {(one["method"], one["route"], one["bearer"]) for one in access}
    assert ("POST", "/ack/{id}", "boss") in told
    assert ("GET", "/livez", "nobody") in told
    assert sum(event["event"] == "unreadable" for event in events) == 2


def test_without_debug_good_requests_leave_no_line(serve: Serve) -> None:
    served = serve()
    assert served.ask("GET", "/record").status == 204
    assert served.ask("GET", "/nothing").status == 404
    served.stop()
    events = [event["event"] for event in served.events()]
    assert events == ["started", "stopping", "stopped"]


def test_an_owner_that_dies_and_one_that_takes_over_are_told(serve: Serve) -> None:
    owner = serve()
    guest = serve()
    with socket.create_connection(guest.place, timeout=PATIENCE_S) as waiting:
        body = b'{"queues": ["default"], "wait": "60s"}'
        head = b"POST /v1/lease HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
        head += b"application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        waiting.sendall(head + body)
        # Answered by the owner, behind what came before.
        assert guest.ask("GET", "/readyz").status == 200
        owner.kill()
        assert waiting.makefile("rb").readline().startswith(b"HTTP/1.1 503 ")
    guest.until(200, "/readyz")
    guest.stop()
    events = guest.events()
    told = [event["event"] for event in events]
    assert told.index("owner stopped") < told.index("owner reopened")
    failed = next(event for event in events if event["event"] == "answered")
    assert (failed["route"], failed["status"]) == ("/v1/lease", 503)
    assert failed["level"] == "warning"


def test_a_bug_is_told_by_its_place_and_without_a_value() -> None:
    stream = io.StringIO()
    watcher = Watcher("debug", stream)
    watcher.broken(thrown(CANARY))
    watcher.stray(None, {"message": CANARY, "exception": thrown(CANARY)})
    stopped = OwnerStopped(f"ValueError: {CANARY}")
    stopped.__cause__ = thrown(CANARY)
    watcher.owner_stopped(stopped)
    watcher.not_served(thrown(CANARY))
    assert CANARY not in stream.getvalue()
    told = lines(stream)
    assert [one["event"] for one in told] == [
        "broken",
        "stray",
        "owner stopped",
        "not served",
    ]
    for one in told:
        assert one["error"] == "ValueError < KeyError"
        assert one["trace"][-1].endswith(" thrown")


def test_a_handler_that_breaks_tells_no_value_to_log_or_caller() -> None:
    stream = io.StringIO()
    told: list[Response] = []

    def breaks(call: Call) -> Plan:
        raise thrown(call.request.body.decode())

    route = Route(
        method="POST",
        path="/broken",
        handler=breaks,
        verb=Verb.READ,
        tag="about",
        answers={200: None},
    )

    async def ask() -> None:
        desk = Desk(NoLink(), asyncio.get_running_loop())
        guard = Guard(Open(), "127.0.0.1", ())
        nowhere = Path("none")
        callbacks = Callbacks(CallbackFile(nowhere), Watcher("info", stream))
        ids = Ids("p1", bytes(32))
        facilities = Facilities(
            ids,
            Finder(nowhere),
            Past(InFile(nowhere).open_past, "p1"),
            callbacks,
            Writes(nowhere, desk),
            Acts(nowhere, Watcher("info", stream), asyncio.get_running_loop()),
            Pulse(desk, Watcher("info", stream).broken),
            Alone("p1"),
            "default",
        )
        app = App(Router([route]), desk, guard, facilities, Watcher("info", stream))
        headers = {b"host": b"localhost"}
        body = CANARY.encode()
        app.handle(Request(b"POST", b"/broken", headers, body), told.append)
        app.close()

    asyncio.run(ask())
    assert told[0].status == 500
    assert CANARY.encode() not in told[0].body
    assert CANARY not in stream.getvalue()
    broken, answered = lines(stream)
    assert (broken["event"], broken["error"]) == ("broken", "ValueError < KeyError")
    assert (answered["status"], answered["route"]) == (500, "/broken")
    assert answered["level"] == "error"


def test_why_an_owner_stopped_is_not_told_to_callers() -> None:
    stopped = OwnerStopped(f"KeyError: {CANARY}")
    assert stopped.args[0].encode() in of_error(stopped).body
    stopped.__cause__ = thrown(CANARY)
    assert CANARY.encode() not in of_error(stopped).body


def test_no_value_can_begin_a_line_of_its_own_or_move_a_cursor() -> None:
    stream = io.StringIO()
    nasty = 'a\nb\r\x1b[2J\x7f\x9b\u2028\u202e"}{\ud800'
    Watcher("info", stream).happened("told", value=nasty)
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert text.rstrip("\n").isascii()
    assert text.rstrip("\n").isprintable()
    assert lines(stream)[0]["value"] == nasty


def test_levels_leave_out_what_is_below_them() -> None:
    stream = io.StringIO()
    watcher = Watcher("warning", stream)
    watcher.happened("quiet")
    watcher.warned("loud")
    assert [one["event"] for one in lines(stream)] == ["loud"]


def test_a_log_that_nobody_reads_stops_nothing() -> None:
    stream = io.StringIO()
    watcher = Watcher("info", stream)
    stream.close()
    watcher.happened("told")
    watcher.broken(thrown("x"))
    assert stream.closed
