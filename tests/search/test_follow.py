"""A process of its own follows a store that its owner writes to."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.core import events
from headway.core.states import JobState
from headway.runtime.patience import NICENESS
from headway.runtime.views import HistoryPage
from headway.search import follow as following_module
from headway.search.finder import Finder
from headway.search.follow import FLOOD_S, IDLE_S, FileSource, Follower, follow
from headway.search.indexer import Indexer
from headway.search.query import By, Search
from headway.store.port import Batch, Segment
from headway.store.sqlite.store import SqliteStore
from tests.search.plain import check_index, numbered, retell
from tests.search.stories import Teller

QUEUE = headway.QueueConfig(name="mail")


class Following:
    """The process, and what it says."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def wait_for(self, number: int) -> dict[str, Any]:
        """Its first line that says it has indexed all before this event."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            told: dict[str, Any] = json.loads(line)
            if told["next"] >= number:
                return told
        raise AssertionError("it ended before it came so far")

    def end(self) -> int:
        """By its input, as when its parent is gone."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait()


@contextmanager
def following(store: Path, index: Path, *more: str) -> Iterator[Following]:
    command = [sys.executable, "-m", "headway.search", str(store), str(index), *more]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, start_new_session=True
    ) as process:
        yield Following(process)
        process.kill()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "index.db"


def work(queue: headway.Headway, count: int) -> int:
    """Some jobs of each fate; answers the next event."""
    queue.enqueue_many("mail", [headway.spec(b"x", tenant="a") for _ in range(count)])
    jobs = queue.lease("mail", most=count, worker="w")
    queue.ack(*[job.token for job in jobs[::2]])
    for job in jobs[1::2]:
        queue.nack(job.token, "no", is_bury=True)
    return queue.history(1, 1 << 30).next


def check(queue: headway.Headway, index: Path) -> None:
    page: HistoryPage = queue.history(1, 1 << 30)
    check_index(index, retell(enumerate(page.events, 1)))


def test_it_follows_an_owner_at_work_and_ends_with_its_parent(
    store: Path, index: Path
) -> None:
    with headway.open(store) as queue:
        queue.configure(QUEUE)
        work(queue, 4)
        with following(store, index) as indexing:
            for _ in range(3):
                told = indexing.wait_for(work(queue, 6))
                finder = Finder(index)
                assert finder.position().next == told["next"]
                assert finder.position().at_ms == told["at_ms"]
                finder.close()
            assert queue.follow("search", told["keep"])
            assert indexing.end() == 0
        check(queue, index)
        finder = Finder(index)
        dead = Search(queue="mail", states=(JobState.DEAD,), by=By.CHANGED)
        assert len(finder.search(dead).jobs) == queue.counts("mail").dead


def test_a_killed_one_goes_on_where_it_was(store: Path, index: Path) -> None:
    with headway.open(store) as queue:
        queue.configure(QUEUE)
        for _ in range(3):
            with following(store, index) as indexing:
                indexing.wait_for(work(queue, 10))
                work(queue, 10)
                indexing.process.send_signal(signal.SIGKILL)
        with following(store, index) as indexing:
            indexing.wait_for(queue.history(1, 1 << 30).next)
            indexing.end()
        check(queue, index)


def test_it_never_owns_the_store(store: Path, index: Path) -> None:
    with headway.open(store) as queue:
        queue.configure(QUEUE)
        end = work(queue, 2)
    with following(store, index) as indexing:
        indexing.wait_for(end)
        with headway.open(store) as queue:
            indexing.wait_for(work(queue, 2))
            indexing.end()
            check(queue, index)


def test_an_index_that_is_removed_or_damaged_is_made_anew(
    store: Path, index: Path
) -> None:
    """By the next process: this one ends, and says so."""
    with headway.open(store) as queue:
        queue.configure(QUEUE)
        with following(store, index) as indexing:
            indexing.wait_for(work(queue, 4))
            for file in index.parent.glob("index.db*"):
                file.unlink()
            assert indexing.process.wait() == 1
        with following(store, index) as indexing:
            indexing.wait_for(work(queue, 4))
            assert indexing.end() == 0
        check(queue, index)
        blob = bytearray(index.read_bytes())
        blob[4_096:] = b"\xaa" * (len(blob) - 4_096)
        index.write_bytes(blob)
        work(queue, 4)
        with following(store, index) as indexing:
            assert indexing.process.wait() == 1
        with following(store, index) as indexing:
            indexing.wait_for(work(queue, 4))
            assert indexing.end() == 0
        check(queue, index)


def test_what_stands_against_it_is_said(store: Path, index: Path) -> None:
    command = [sys.executable, "-m", "headway.search", str(store), str(index)]
    run = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    # Its input is at its end already: there is nothing to do.
    assert (run.returncode, run.stderr) == (0, "")
    with following(store, index) as indexing:
        assert indexing.process.wait() == 1
    command += ["--jobs", "many"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "not a number of jobs" in run.stderr


class History:
    """A store with nothing but history in it."""

    def __init__(self, path: Path) -> None:
        self.store = SqliteStore(path)
        self.epoch = self.store.take_over()

    def write(self, segments: list[Segment], before: int | None = None) -> None:
        for segment in segments:
            batch = Batch([], [], [], [], [], segment, history_before=before)
            self.store.commit(batch, self.epoch)


def step_to_the_end(follower: Follower, indexer: Indexer) -> None:
    place = None
    while place != indexer.place:
        place = indexer.place
        follower.step()


def test_history_that_was_dropped_is_a_gap(store: Path, index: Path) -> None:
    teller = Teller()
    for _ in range(10):
        teller.enqueue()
    history = History(store)
    history.write(teller.segments[:3])
    indexer = Indexer(index)
    follower = Follower(FileSource(store, indexer), indexer)
    step_to_the_end(follower, indexer)
    history.write(teller.segments[3:8])
    history.write(teller.segments[8:], before=8)
    step_to_the_end(follower, indexer)
    finder = Finder(index)
    (gap,) = finder.gaps()
    assert (gap.first, gap.next) == (4, 8)
    assert [job.seq for job in finder.search(Search()).jobs] == [10, 9, 8, 3, 2, 1]
    follower.close()


def test_another_store_in_the_same_place_is_indexed_anew(
    store: Path, index: Path
) -> None:
    """Shorter, as long, or longer than what was there before."""
    indexer = Indexer(index)
    for number, count in enumerate((5, 3, 3, 9)):
        teller = Teller()
        for _ in range(count):
            teller.enqueue(tenant=f"t{number}")
        for file in store.parent.glob("jobs.db*"):
            file.unlink()
        history = History(store)
        history.write(teller.segments)
        follower = Follower(FileSource(store, indexer), indexer)
        step_to_the_end(follower, indexer)
        finder = Finder(index)
        assert {job.tenant for job in finder.search(Search()).jobs} == {f"t{number}"}
        assert indexer.place.next == count + 1
        finder.close()
        follower.close()
        history.store.close()


@pytest.mark.parametrize("count", [2, 100])
def test_a_job_that_comes_twice_is_of_another_history(
    store: Path, index: Path, count: int
) -> None:
    """Fed by pages, the index does not know the commits it has read."""
    teller = Teller()
    teller.enqueue(3)
    indexer = Indexer(index)
    told = [event for _, event in numbered(teller.segments)]
    indexer.apply_page(HistoryPage(1, told))
    other = Teller()
    other.commit(*[events.RuleChanged(other.now_ms, "mail", "pause")] * 3)
    other.enqueue(count, tenant="other")
    History(store).write(other.segments)
    follower = Follower(FileSource(store, indexer), indexer)
    step_to_the_end(follower, indexer)
    check_index(index, retell(numbered(other.segments)))
    follower.close()


def test_the_same_store_is_known_again(store: Path, index: Path) -> None:
    teller = Teller()
    history = History(store)
    for _ in range(4):
        teller.enqueue()
        history.write(teller.segments[-1:], before=max(1, teller.next - 1))
        indexer = Indexer(index)
        follower = Follower(FileSource(store, indexer), indexer)
        step_to_the_end(follower, indexer)
        follower.close()
        indexer.close()
    finder = Finder(index)
    assert finder.gaps() == []
    assert len(finder.search(Search()).jobs) == 4


class Pauses:
    """Ends it after so many steps, and knows how long it has rested before each."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.rests_s: list[float] = []

    def is_over(self, wait_s: float) -> bool:
        self.rests_s.append(wait_s)
        return len(self.rests_s) > self.steps


def test_it_rests_longer_in_a_flood_and_shorter_where_it_lags(
    store: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    teller = Teller()
    for _ in range(20):
        teller.enqueue(100)
    history = History(store)
    history.write(teller.segments)
    size = len(teller.segments[0].blob)
    monkeypatch.setattr(following_module, "BATCH_BYTES", 8 * size + 100)
    monkeypatch.setattr(following_module, "MORE_BYTES", 7 * size)
    monkeypatch.setattr(following_module, "FLOOD_BYTES", size)
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    indexer = Indexer(index)
    pauses = Pauses(4)
    follow(FileSource(store, indexer), indexer, lambda _: None, pauses.is_over)
    # Two batches that others follow, the rest of a flood, and nothing more.
    assert pauses.rests_s == [0.0, 0.0, 0.0, FLOOD_S, IDLE_S]
    check_index(index, retell(numbered(teller.segments)))


@pytest.mark.skipif(sys.platform != "linux", reason="others know less of it")
def test_it_gives_way_to_the_server(store: Path, index: Path) -> None:
    with headway.open(store) as queue:
        queue.configure(QUEUE)
        end = work(queue, 2)
    with following(store, index) as indexing:
        indexing.wait_for(end)
        process = indexing.process.pid
        assert os.getpriority(os.PRIO_PROCESS, process) == NICENESS
        assert os.sched_getscheduler(process) == os.SCHED_BATCH
        group = Path(f"/proc/{process}/autogroup")
        if group.exists():
            assert group.read_text().split()[-1] == str(NICENESS)
        indexing.end()
