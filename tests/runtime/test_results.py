"""Results: kept with the completion, for as long as was asked, and for nobody else."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.core.commands import (
    Ack,
    Cancel,
    Changed,
    Enqueue,
    Lease,
    Nack,
    Redrive,
    Reply,
    Wait,
)
from headway.core.defaults import RESULT_BYTES_MAX
from headway.core.errors import BadValue, NoResult
from headway.core.results import Result
from headway.core.spec import JobSpec
from headway.core.states import JobState
from headway.runtime import results
from headway.runtime.results import Ended, EndWatch, Watch
from headway.runtime.verify import problems
from headway.runtime.views import Handed
from tests.runtime.desk import Desk
from tests.runtime.reigns import Reigns
from tests.store.places import Place

HOUR_MS = 3_600_000


@pytest.fixture
def desk() -> Desk:
    return Desk()


def leased(desk: Desk) -> int:
    handed = desk.ask(Lease(max=1, lease_ms=HOUR_MS))
    assert isinstance(handed, Handed)
    return handed.jobs[0].token


def ended(desk: Desk, seq: int) -> Ended:
    found = desk.ask(Watch(seq))
    assert isinstance(found, Ended), found
    return found


def is_none(desk: Desk, seq: int) -> bool:
    return isinstance(desk.ask(Watch(seq)), NoResult)


def done(desk: Desk, result: Result | None = None, keep_ms: int = HOUR_MS) -> int:
    [seq] = desk.put(1, result_ms=keep_ms)
    token = leased(desk)
    desk.ask(Ack([token], {} if result is None else {token: result}))
    return seq


def test_result_comes_with_the_ack_and_is_there_for_the_next_owner(desk: Desk) -> None:
    [seq] = desk.put(1, result_ms=HOUR_MS)
    assert ended(desk, seq).state is JobState.READY
    token = leased(desk)
    assert ended(desk, seq).state is JobState.LEASED
    desk.ask(Ack([token], {token: Result(b'{"sent":1}')}))
    desk.open()
    found = ended(desk, seq)
    assert (found.state, found.value, found.queue) == (
        JobState.DONE,
        b'{"sent":1}',
        "q",
    )
    assert found.until_ms == desk.now_ms + HOUR_MS


def test_who_asks_for_nothing_keeps_nothing(desk: Desk) -> None:
    [seq] = desk.put(1)
    assert is_none(desk, seq)
    token = leased(desk)
    desk.ask(Ack([token], {token: Result(b"1")}))
    assert is_none(desk, seq)
    assert desk.disk.results == {}


@pytest.mark.parametrize("seq", [0, -1, 99, 2**70])
def test_jobs_that_never_were_have_no_result(desk: Desk, seq: int) -> None:
    assert is_none(desk, seq)


def test_an_ack_without_a_result_leaves_null(desk: Desk) -> None:
    assert ended(desk, done(desk)).value == b"null"


def test_of_a_result_that_is_too_large_only_that_is_kept(desk: Desk) -> None:
    found = ended(desk, done(desk, Result(bytes(RESULT_BYTES_MAX + 1))))
    assert (found.state, found.value) == (JobState.DONE, None)
    assert f"{RESULT_BYTES_MAX} may be kept" in found.problem
    largest = b"1" * RESULT_BYTES_MAX
    assert ended(desk, done(desk, Result(largest))).value == largest


def test_a_result_ends_and_is_dropped(desk: Desk) -> None:
    seq = done(desk, Result(b"1"))
    desk.now_ms += HOUR_MS - 1
    assert ended(desk, seq).value == b"1"
    assert desk.owner.next_ms() == desk.now_ms + 1
    desk.now_ms += 1
    assert is_none(desk, seq)
    assert desk.disk.results == {}


def test_results_are_dropped_a_few_at_a_time_and_without_any_commands(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "DROPPED_AT_ONCE", 4)
    for number in range(10):
        done(desk, Result(b"%d" % number), keep_ms=100)
    late = done(desk, keep_ms=HOUR_MS)
    desk.now_ms += 101
    left = []
    while (next_ms := desk.owner.next_ms()) is not None and next_ms <= desk.now_ms:
        desk.owner.step([], desk.now_ms)
        left.append(len(desk.disk.results))
    assert left[:3] == [7, 3, 1]
    assert ended(desk, late).value == b"null"


def test_a_cancelled_job_says_so(desk: Desk) -> None:
    [seq] = desk.put(1, result_ms=HOUR_MS)
    desk.ask(Cancel(seq))
    found = ended(desk, seq)
    assert (found.state, found.value) == (JobState.CANCELLED, None)


def test_a_dead_job_says_why_and_its_redrive_may_come_to_a_result(desk: Desk) -> None:
    [seq] = desk.bury(1, "no such card", result_ms=HOUR_MS)
    found = ended(desk, seq)
    assert found.state is JobState.DEAD
    assert [error.text for error in found.errors] == ["no such card"]
    desk.ask(Redrive(seq))
    assert ended(desk, seq).state is JobState.READY
    token = leased(desk)
    desk.ask(Ack([token], {token: Result(b"2")}))
    assert ended(desk, seq).value == b"2"


def test_a_reply_that_completes_a_job_is_its_result(desk: Desk) -> None:
    [seq] = desk.put(1, result_ms=HOUR_MS)
    desk.ask(Wait(leased(desk), "order-1", HOUR_MS, is_done_on_reply=True))
    assert ended(desk, seq).state is JobState.WAITING
    desk.ask(Reply("q", "order-1", b'"paid"'))
    assert ended(desk, seq).value == b'"paid"'


def test_answer_is_held_back_until_the_job_has_ended(desk: Desk) -> None:
    [seq] = desk.put(1, result_ms=HOUR_MS)
    watch, other = Watch(seq, 20_000), Watch(seq, 20_000)
    assert desk.owner.step([watch, other], desk.now_ms) == []
    token = leased(desk)
    desk.now_ms += 19_000
    ack = Ack([token], {token: Result(b"3")})
    answers: dict[Any, Any] = dict(desk.owner.step([ack], desk.now_ms))
    assert answers[watch].value == answers[other].value == b"3"


def test_answer_comes_as_things_stand_when_the_wait_is_over(desk: Desk) -> None:
    [seq] = desk.put(1, result_ms=HOUR_MS)
    watch = Watch(seq, 500)
    assert desk.owner.step([watch], desk.now_ms) == []
    assert desk.owner.next_ms() == desk.now_ms + 500
    desk.now_ms += 500
    answers: dict[Any, Any] = dict(desk.owner.step([], desk.now_ms))
    assert answers[watch].state is JobState.READY
    next_ms = desk.owner.next_ms()
    assert next_ms is None or next_ms > desk.now_ms


def test_a_death_is_told_to_those_who_wait_and_a_retry_is_not(desk: Desk) -> None:
    [seq] = desk.put(1, result_ms=HOUR_MS, attempts_max=2)
    watch = Watch(seq, 60_000)
    desk.owner.step([watch], desk.now_ms)
    desk.ask(Nack(leased(desk), "once", retry_in_ms=0))
    nack = Nack(leased(desk), "twice")
    answers: dict[Any, Any] = dict(desk.owner.step([nack], desk.now_ms))
    assert answers[watch].state is JobState.DEAD


def test_who_waits_no_more_is_answered_once(desk: Desk) -> None:
    [seq] = desk.put(1, result_ms=HOUR_MS)
    watch = Watch(seq, 60_000)
    desk.owner.step([watch], desk.now_ms)
    end = EndWatch(watch)
    answers: dict[Any, Any] = dict(desk.owner.step([end], desk.now_ms))
    assert answers[watch].state is JobState.READY
    assert answers[end].count == 1
    again = desk.ask(EndWatch(watch))
    assert isinstance(again, Changed)
    assert again.count == 0


def test_waits_are_bounded_in_time_and_number(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(desk.ask(Watch(1, 60_001)), BadValue)
    monkeypatch.setattr(results, "WATCHES_MAX", 2)
    [seq] = desk.put(1, result_ms=HOUR_MS)
    watches = [Watch(seq, 60_000) for _ in range(3)]
    answers = dict(desk.owner.step(watches, desk.now_ms))
    assert list(answers) == watches[2:]


def test_ends_of_waits_that_were_answered_do_not_pile_up(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "SPARE_ENDS", 10)
    [stays] = desk.put(1, result_ms=HOUR_MS, run_at_ms=desk.now_ms + HOUR_MS)
    desk.owner.step([Watch(stays, 60_000)], desk.now_ms)
    for _ in range(50):
        [seq] = desk.put(1, result_ms=HOUR_MS)
        desk.owner.step([Watch(seq, 60_000)], desk.now_ms)
        desk.ask(Ack([leased(desk)]))
    assert len(desk.owner._results._ends) < 20


def test_a_result_is_written_with_the_completion_or_not_at_all(place: Place) -> None:
    reigns = Reigns(place)
    reigns.say(Enqueue("q", [JobSpec(result_ms=HOUR_MS)]))
    [job] = reigns.say(Lease(max=1, lease_ms=HOUR_MS))
    reigns.store.fails = "before"
    with pytest.raises(headway.OwnerStopped):
        reigns.say(Ack([job.token], {job.token: Result(b"1")}))
    reigns.take_over()
    watch = Watch(job.seq)
    answers: dict[Any, Any] = dict(reigns.owner.step([watch], reigns.now_ms))
    assert answers[watch].state is JobState.LEASED
    reigns.store.fails = "after"
    with pytest.raises(headway.OwnerStopped):
        reigns.say(Ack([job.token], {job.token: Result(b"1")}))
    reigns.take_over()
    answers = dict(reigns.owner.step([watch], reigns.now_ms))
    assert (answers[watch].state, answers[watch].value) == (JobState.DONE, b"1")


KILLED = """
import os, signal, sys, headway

queue = headway.open(sys.argv[1])
queue.configure(headway.QueueConfig(name="mail"))
seq = queue.enqueue("mail", b"{}", result="1h")
[job] = queue.lease("mail")
queue.ack(job.token, results={job.token: b'{"sent": 17}'})
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_result_is_there_after_a_kill_right_behind_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], env=os.environ, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert problems(path) == []
    with headway.open(path) as queue:
        assert queue.result(1).value == b'{"sent": 17}'
    assert problems(path) == []


def test_another_process_waits_through_the_owner_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    waits = (
        "import sys, headway\n"
        "with headway.open(sys.argv[1]) as queue:\n"
        "    print(queue.result(1).state, flush=True)\n"
        "    print(queue.result(1, wait='60s').value.decode(), flush=True)\n"
    )
    with headway.open(path) as queue:
        queue.configure(headway.QueueConfig(name="mail"))
        queue.enqueue("mail", b"{}", result="1h")
        other = subprocess.Popen(
            [sys.executable, "-c", waits, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        [job] = queue.lease("mail")
        queue.ack(job.token, results={job.token: b'"sent"'})
        assert other.stdout.readline() == '"sent"\n'
        assert other.wait(60) == 0
        other.stdout.close()
