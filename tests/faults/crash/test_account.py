"""The account finds what it is there to find: every kind of fault, planted."""

import pytest

from tests.faults.crash.account import Account
from tests.faults.crash.jobs import LONG_MS, name_of, payload_of

FIRST = 1 << 32
SECOND = 2 << 32
AT_MS = 1_000_000


def enqueued(name: str, seq: int, thread: str = "p") -> list[str]:
    return [f"{thread} try enqueue {name}", f"{thread} ok enqueue {seq}"]


def leased(name: str, seq: int, token: int, at_ms: int = AT_MS) -> list[str]:
    until_ms = at_ms + LONG_MS
    return ["w try lease", f"w ok lease {LONG_MS} {seq}:{token}:{until_ms}:{name}"]


def faults_of(*lives: list[str], is_drained: bool = True) -> list[str]:
    account = Account()
    for life in lives:
        for line in life:
            account.hear(line)
        account.end_life()
    if is_drained:
        account.check_drained()
    return account.faults


DONE = [
    *enqueued("p0-1", 1),
    *leased("p0-1", 1, FIRST),
    f"w try ack {FIRST}",
    "w ok ack",
]
HELD = [*enqueued("p0-1", 1), *leased("p0-1", 1, FIRST)]
WAITING = [*HELD, f"w try wait {FIRST} key", "w ok wait"]


def test_a_job_that_was_done_is_no_fault() -> None:
    assert faults_of(DONE) == []


def test_what_nobody_knows_may_be_there_or_not() -> None:
    unknown = ["p try enqueue i0-1"]
    assert faults_of(unknown) == []
    assert faults_of(unknown, leased("i0-1", 1, SECOND)) == []
    acked = [*HELD, f"w try ack {FIRST}"]
    later_ms = AT_MS + 5
    assert faults_of(acked, leased("p0-1", 1, SECOND, later_ms)) == []


def test_an_expired_lease_may_be_followed_by_another() -> None:
    assert faults_of(HELD, leased("p0-1", 1, SECOND, AT_MS + LONG_MS)) == []


STORIES: dict[str, tuple[list[list[str]], str]] = {
    "lost": ([enqueued("p0-1", 1)], "lost"),
    "unexpected": ([leased("p0-1", 1, FIRST)], "unexpected"),
    "garbled": ([enqueued("p0-1", 1), leased("garbled", 1, SECOND)], "unexpected"),
    "done again": (
        [DONE, leased("p0-1", 1, SECOND, AT_MS + LONG_MS)],
        "was done and is delivered again",
    ),
    "redelivered early": (
        [HELD, leased("p0-1", 1, SECOND, AT_MS + 1)],
        "was delivered again",
    ),
    "token lost": (
        [HELD, [f"w try ack {FIRST}", f"w ok ack {FIRST}"]],
        "was lost before its end",
    ),
    "extend lost": (
        [HELD, [f"w try extend {FIRST}", f"w ok extend {FIRST}"]],
        "was lost before its end",
    ),
    "key twice": (
        [["p try enqueue i0-1"], enqueued("i0-1", 1), enqueued("i0-1", 2)],
        "is job 1 and job 2",
    ),
    "seq reused": ([[*DONE, *enqueued("p0-2", 1)]], "is 'p0-1' and 'p0-2'"),
    "no reply": (
        [WAITING, leased("p0-1", 1, SECOND, AT_MS + 5)],
        "goes on without its reply",
    ),
    "two answers": (
        [[*WAITING, *["p try reply key", "p ok reply resolved"] * 2]],
        "was answered twice",
    ),
    "cancelled": (
        [
            [*enqueued("p0-1", 1), "p try cancel 1", "p ok cancel 1"],
            leased("p0-1", 1, SECOND),
        ],
        "was cancelled and is delivered again",
    ),
    "nonsense": ([["p ok enqueue 1"]], "not understood"),
}


@pytest.mark.parametrize("story", STORIES)
def test_every_kind_of_fault_is_found(story: str) -> None:
    lives, said = STORIES[story]
    assert any(said in fault for fault in faults_of(*lives))


def test_a_garbled_payload_has_no_name() -> None:
    payload = payload_of("p0-1")
    assert name_of(payload) == "p0-1"
    assert name_of(payload + b"!") == "garbled"
