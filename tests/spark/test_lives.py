"""A task makes rows of jobs whose whole life it has seen, and leaves the others alone."""

from datetime import UTC, datetime
from itertools import chain
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from headway.core import events as told
from headway.spark.columns import EVENTS, arrow_schema
from headway.spark.decode import piles
from headway.spark.source.lives import Lives, lives
from headway.wire.history import Commit

WHOSE = {"generation": 0, "queue": "mail", "slo_ms": 1_000, "tenant": "t", "kind": "k"}
LABELS = {"region": "north"}


def event(which: Any, at_ms: int, seq: int = 1, **more: Any) -> Any:
    return which(at_ms=at_ms, seq=seq, **{**WHOSE, **more})


def enqueue(at_ms: int, seq: int = 1, **more: Any) -> Any:
    given = {"run_at_ms": at_ms, "priority": 3, "cost": 2, **more}
    return event(told.Enqueued, at_ms, seq, **given)


def lease(at_ms: int, token: int, seq: int = 1, **more: Any) -> Any:
    given = {"attempt": 1, "worker": f"w{token}", "wait_ms": 10, "held_ms": 5}
    given |= {"lease_until_ms": at_ms + 30_000, **more}
    return event(told.Leased, at_ms, seq, token=token, **given)


def ack(at_ms: int, token: int, seq: int = 1, **more: Any) -> Any:
    given = {"attempt": 1, "run_ms": 0, **more}
    return event(told.Acked, at_ms, seq, token=token, **given)


def retry(at_ms: int, token: int, **more: Any) -> Any:
    given: Any = {"attempt": 1, "run_ms": 7, "reason": "Boom", "text": "it broke"}
    return event(told.Retried, at_ms, token=token, run_at_ms=at_ms, **given, **more)


def seen(*happened: Any) -> Lives:
    blob = msgspec.msgpack.encode([0, {}, list(happened)])
    commit = Commit(1, len(happened), 0, blob)
    by_type: dict[str, list[pa.RecordBatch]] = {}
    for batch in chain.from_iterable(piles("p1", [commit], 1, len(happened) + 1)):
        by_type.setdefault(batch.column("type")[0].as_py(), []).append(batch)
    return lives(by_type)


def at(moment_ms: int) -> datetime:
    return datetime.fromtimestamp(moment_ms / 1_000, UTC)


def test_a_plain_life_is_one_job_and_one_attempt() -> None:
    found = seen(enqueue(100, labels=LABELS), lease(150, 9), ack(400, 9))
    (job,) = found.jobs.to_pylist()
    assert job == {
        "partition": "p1",
        "job": 1,
        **WHOSE,
        "outcome": "done",
        "enqueued_at": at(100),
        "ready_at": at(100),
        "started_at": at(150),
        "ended_at": at(400),
        "first_event": 1,
        "ended_event": 3,
        "priority": 3,
        "cost": 2,
        "weight": None,
        "labels": list(LABELS.items()),
        "schedule": None,
        "tick_at": None,
        "waits": 1,
        "misses": 0,
        "wait_ms": 10,
        "held_ms": 5,
        "leases": 1,
        "attempts": 1,
        "run_ms": 250,
        **dict.fromkeys(("retries", "losses", "releases"), 0),
        **dict.fromkeys(("reply_waits", "replies", "reply_ms"), 0),
        "last_reason": None,
        "last_error": None,
    }
    (attempt,) = found.attempts.to_pylist()
    assert attempt == {
        "partition": "p1",
        "job": 1,
        **WHOSE,
        "token": 9,
        "attempt": 1,
        "worker": "w9",
        "started_at": at(150),
        "ended_at": at(400),
        "ended_event": 3,
        "end": "ack",
        "run_ms": 250,
        "wait_ms": 10,
        "held_ms": 5,
        "is_again": False,
        "reason": None,
        "error": None,
    }
    assert found.rest.num_rows == 0
    assert found.rest.schema == arrow_schema(EVENTS)


def test_a_long_life_is_added_up() -> None:
    found = seen(
        enqueue(0, weight=2.5),
        lease(10, 1, wait_ms=2_000),
        retry(30, 1),
        lease(40, 2, attempt=2),
        event(told.Lost, 60, attempt=2, run_ms=20, token=2),
        lease(70, 3, attempt=2, is_again=True, wait_ms=99),
        event(told.Released, 75, attempt=2, run_ms=5, token=3),
        lease(80, 4, attempt=2, is_again=True),
        event(
            told.Waited,
            90,
            attempt=2,
            run_ms=10,
            reply_key="k",
            wait_until_ms=500,
            token=4,
        ),
        event(
            told.Replied,
            190,
            reply_key="k",
            is_early=False,
            is_done=True,
            waited_ms=100,
        ),
    )
    (job,) = found.jobs.to_pylist()
    assert job["outcome"] == "done"
    assert (job["waits"], job["misses"], job["wait_ms"]) == (2, 1, 2_010)
    assert (job["leases"], job["attempts"], job["run_ms"]) == (4, 2, 55)
    assert (job["retries"], job["losses"], job["releases"]) == (1, 1, 1)
    assert (job["reply_waits"], job["replies"], job["reply_ms"]) == (1, 1, 100)
    assert (job["last_reason"], job["last_error"]) == ("lease lost", None)
    assert job["weight"] == 2.5
    attempts = found.attempts.to_pylist()
    assert [one["end"] for one in attempts] == ["retry", "lose", "release", "wait"]
    assert attempts[0]["error"] == "it broke"
    assert attempts[2]["is_again"] is True


def test_one_that_dies_unstarted_has_no_start() -> None:
    found = seen(enqueue(0), event(told.Expired, 50))
    (job,) = found.jobs.to_pylist()
    assert (job["outcome"], job["started_at"], job["leases"]) == ("expired", None, 0)
    assert job["last_reason"] == "expired"
    assert found.attempts.num_rows == 0


def test_a_redriven_job_is_another_one() -> None:
    dead = event(told.Buried, 20, attempt=1, reason="Boom", text="it broke", token=1)
    again = [
        event(told.Redriven, 30, generation=1),
        lease(35, 2, generation=1),
        ack(45, 2, generation=1),
    ]
    found = seen(enqueue(0), lease(10, 1), dead, *again)
    first, second = found.jobs.to_pylist()
    assert (first["outcome"], first["last_error"]) == ("dead", "it broke")
    assert (second["outcome"], second["generation"]) == ("done", 1)
    assert (second["ready_at"], second["priority"]) == (at(30), None)
    assert second["labels"] is None


ODD = {
    "it is not over": [enqueue(0), lease(10, 1)],
    "its begin is elsewhere": [lease(10, 1), ack(20, 1)],
    "a start is elsewhere": [enqueue(0), ack(20, 1)],
    "it goes on after its end": [
        enqueue(0),
        lease(10, 1),
        ack(20, 1),
        event(told.Promoted, 30),
    ],
    "it ends twice": [enqueue(0), lease(10, 1), ack(20, 1), event(told.Cancelled, 30)],
    "its lease is of another": [
        enqueue(0),
        lease(10, 1),
        lease(10, 2),
        ack(20, 1),
        event(told.Lost, 15, attempt=1, run_ms=0, token=3),
    ],
    "it starts before it is there": [enqueue(10), lease(5, 1), ack(20, 1)],
    "a lease ends twice": [
        enqueue(0),
        lease(1, 1),
        event(told.Lost, 2, attempt=1, run_ms=0, token=1),
        lease(3, 2),
        ack(4, 1),
    ],
    "its kind changes": [enqueue(0), lease(10, 1), ack(20, 1, kind="other")],
    "it is done without a start": [enqueue(0), ack(20, 0)],
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_what_is_odd_is_left_to_the_gates(odd: list[Any]) -> None:
    good = [enqueue(1, 2), lease(10, 90, 2), ack(20, 90, 2)]
    found = seen(*odd, *good)
    assert [job["job"] for job in found.jobs.to_pylist()] == [2]
    assert [one["job"] for one in found.attempts.to_pylist()] == [2]
    assert found.rest.num_rows == len(odd)
    assert set(found.rest.column("job").to_pylist()) == {1}


def test_events_of_no_job_are_nobodys_life() -> None:
    rule = told.RuleChanged(at_ms=1, queue="mail", what="pause")
    tick = told.Ticked(at_ms=1, queue="mail", schedule="s", tick_ms=1, seq=1)
    found = seen(rule, enqueue(1), tick, lease(10, 1), ack(20, 1))
    (job,) = found.jobs.to_pylist()
    assert (job["schedule"], job["tick_at"]) == ("s", at(1))
    assert found.rest.num_rows == 0
    assert seen(rule).jobs.num_rows == 0
