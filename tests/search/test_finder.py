"""What is found is what the filters say, page by page, while jobs go on changing."""

from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core import events
from headway.core.errors import BadValue, UnknownJob
from headway.core.states import JobState
from headway.search import cursors
from headway.search.cursors import Cursor
from headway.search.errors import NotIndexed, SearchTooSlow
from headway.search.finder import Finder
from headway.search.indexer import Indexer
from headway.search.keep import Keep
from headway.search.query import By, Search
from tests.search.plain import PlainJob, numbered, retell
from tests.search.stories import START_MS, Teller, played


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.db"


def indexed(path: Path, teller: Teller, keep: Keep | None = None) -> Finder:
    indexer = Indexer(path, keep)
    indexer.apply(teller.segments)
    indexer.close()
    return Finder(path)


def all_pages(finder: Finder, search: Search) -> list[int]:
    seqs: list[int] = []
    while True:
        page = finder.search(search)
        assert len(page.jobs) <= search.limit
        seqs += [job.seq for job in page.jobs]
        if page.cursor is None:
            return seqs
        search = msgspec.structs.replace(search, cursor=page.cursor)


def is_meant(search: Search, job: PlainJob) -> bool:
    names = ("queue", "tenant", "kind", "worker", "reason")
    wanted = {name: getattr(search, name) for name in names}
    at_ms = job.enqueued_ms if search.by is By.ENQUEUED else job.changed_ms
    return (
        all(getattr(job, name) == value for name, value in wanted.items() if value)
        and (not search.states or job.state in search.states)
        and search.labels.items() <= job.labels.items()
        and job.error.startswith(search.error or "")
        and at_ms >= (search.since_ms or 0)
        and (search.until_ms is None or at_ms < search.until_ms)
    )


def expected(search: Search, jobs: dict[int, PlainJob]) -> list[int]:
    found = [job for job in jobs.values() if is_meant(search, job)]
    is_enqueued = search.by is By.ENQUEUED
    found.sort(key=lambda job: job.seq if is_enqueued else job.changed)
    seqs = [job.seq for job in found]
    return seqs[::-1] if search.is_newest_first else seqs


def drawn(draw: Random, jobs: list[PlainJob]) -> Search:
    """A search with filters that some of the jobs are likely to pass."""
    like = draw.choice(jobs)
    fields: dict[str, Any] = {"queue": like.queue}
    for name in ("tenant", "kind", "worker", "reason"):
        if draw.random() < 0.25:
            fields[name] = getattr(like, name) or None
    if fields.get("reason") and like.error and draw.random() < 0.5:
        fields["error"] = like.error[:1]
    if draw.random() < 0.3:
        fields["labels"] = dict(list(like.labels.items())[:4])
    if draw.random() < 0.5:
        fields["states"] = tuple(draw.sample(list(JobState), draw.randrange(1, 4)))
    fields["by"] = draw.choice(list(By))
    if fields["by"] is By.CHANGED and not {"tenant", "kind"} & fields.keys():
        fields["queue"] = draw.choice([None, like.queue])
    for name in ("since_ms", "until_ms"):
        if draw.random() < 0.3:
            other = draw.choice(jobs)
            fields[name] = draw.choice([other.enqueued_ms, other.changed_ms])
    fields["is_newest_first"] = draw.random() < 0.5
    return Search(**fields, limit=draw.choice([2, 7, 1_000]))


@pytest.mark.parametrize("seed", range(20, 30))
def test_pages_are_the_whole_of_what_the_filters_say(seed: int, path: Path) -> None:
    _, segments = played(seed)
    jobs = retell(numbered(segments))
    assert jobs
    draw = Random(seed)
    indexer = Indexer(path)
    indexer.apply(segments)
    finder = Finder(path)
    for _ in range(25):
        search = drawn(draw, list(jobs.values()))
        assert all_pages(finder, search) == expected(search, jobs), search


@pytest.mark.parametrize("seed", range(30, 38))
def test_no_job_comes_twice_and_none_that_stays_is_left_out(
    seed: int, path: Path
) -> None:
    """Between the pages the story goes on."""
    _, segments = played(seed)
    draw = Random(seed)
    half = len(segments) // 2
    before = retell(numbered(segments[:half]))
    after = retell(numbered(segments))
    for by, is_newest_first in product(By, (False, True)):
        file = path.with_name(f"{by}-{is_newest_first}.db")
        indexer = Indexer(file)
        indexer.apply(segments[:half])
        finder = Finder(file)
        search = Search(by=by, is_newest_first=is_newest_first, limit=5)
        seqs: list[int] = []
        rest = segments[half:]
        while True:
            page = finder.search(search)
            seqs += [job.seq for job in page.jobs]
            if page.cursor is None:
                break
            search = msgspec.structs.replace(search, cursor=page.cursor)
            some = draw.randrange(12)
            indexer.apply(rest[:some])
            rest = rest[some:]
        assert len(seqs) == len(set(seqs))
        unchanged = {s for s, job in before.items() if job.changed == after[s].changed}
        assert unchanged <= set(seqs)


def test_a_cursor_is_good_for_its_search_only(path: Path) -> None:
    teller = Teller()
    teller.enqueue(5, queue="mail")
    finder = indexed(path, teller)
    search = Search(queue="mail", limit=2)
    cursor = finder.search(search).cursor
    assert cursor is not None
    longer = Search(queue="mail", limit=3, cursor=cursor)
    assert [job.seq for job in finder.search(longer).jobs] == [3, 2, 1]
    for other in (Search(cursor=cursor), Search(queue="other", cursor=cursor)):
        with pytest.raises(BadValue, match="not a cursor of this search"):
            finder.search(other)


@given(cut=st.integers(0, 40), put=st.text(max_size=8))
@settings(deadline=None)
def test_forged_cursors_are_refused(cut: int, put: str) -> None:
    key, search = b"k" * 16, Search()
    cursor = cursors.pack(Cursor(7, 9), search, key)
    forged = cursor[:cut] + put + cursor[cut + len(put) :]
    if forged == cursor:
        assert cursors.unpack(forged, search, key) == (7, 9)
        return
    with pytest.raises(BadValue, match="not a cursor of this search"):
        cursors.unpack(forged, search, key)


def test_a_cursor_is_written_in_one_way_only() -> None:
    """The last letter has bits that say nothing."""
    key, search = b"k" * 16, Search()
    cursor = cursors.pack(Cursor(70_000, 9), search, key)
    assert len(cursor) % 4, "else there are no such bits"
    for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_":
        if letter != cursor[-1]:
            with pytest.raises(BadValue):
                cursors.unpack(cursor[:-1] + letter, search, key)


BAD: dict[str, dict[str, Any]] = {
    "limit": {"limit": 1_001},
    "labels": {"labels": {str(number): "" for number in range(5)}},
    "tenant": {"tenant": "a"},
    "kind": {"kind": "a"},
    "error": {"error": "x"},
    "states": {"states": (JobState.DONE,)},
    "group": {"group": 0},
    "since_ms": {"since_ms": -1},
    "until_ms": {"until_ms": 1 << 70},
    "queue": {"queue": "q" * 1_000},
    "worker": {"worker": "\ud800"},
    "cursor": {"cursor": "A" * 10_000},
}


@pytest.mark.parametrize("key", BAD)
def test_a_search_that_no_index_serves_is_refused_by_name(key: str, path: Path) -> None:
    finder = indexed(path, Teller())
    with pytest.raises(BadValue) as refused:
        finder.search(Search(**BAD[key]))
    assert refused.value.key == key


def test_a_search_that_takes_too_long_is_given_up(path: Path) -> None:
    teller = Teller()
    teller.enqueue(5_000)
    indexed(path, teller).close()
    finder = Finder(path, longest_ms=-1)
    with pytest.raises(SearchTooSlow, match="shorter time"):
        finder.search(Search(queue="mail", by=By.CHANGED, tenant="nobody"))
    assert Finder(path).search(Search(limit=1)).jobs


def test_without_an_index_that_is_said(path: Path) -> None:
    finder = Finder(path)
    with pytest.raises(NotIndexed):
        finder.search(Search())
    teller = Teller()
    teller.enqueue()
    indexed(path, teller).close()
    assert finder.search(Search()).jobs
    path.unlink()
    path.write_bytes(b"")
    with pytest.raises(NotIndexed):
        finder.position()


def test_an_index_that_was_removed_and_made_anew_is_found(path: Path) -> None:
    teller = Teller()
    teller.enqueue()
    finder = indexed(path, teller)
    assert finder.position().next == 2
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    teller.enqueue()
    indexed(path, teller).close()
    assert finder.position().next == 3


def test_a_job_is_shown_after_it_ended(path: Path) -> None:
    teller = Teller()
    (seq,) = teller.enqueue(tenant="a", kind="k", labels={"region": "east"})
    teller.finish(seq)
    finder = indexed(path, teller)
    job = finder.job(seq)
    assert (job.state, job.labels) == (JobState.DONE, {"region": "east"})
    assert (job.enqueued_ms, job.ended_ms) == (START_MS, START_MS + 2_000)
    for unknown in (0, 2, -1, 1 << 80):
        with pytest.raises(UnknownJob):
            finder.job(unknown)


def test_a_timeline_is_told_in_pages(path: Path) -> None:
    teller = Teller()
    (seq,) = teller.enqueue()
    for _ in range(5):
        teller.lease(seq)
        teller.happen(events.Released, [seq], 1, 5)
    indexer = Indexer(path)
    for segment in (teller.segments[:3], teller.segments[:7], teller.segments):
        indexer.apply(segment)
    finder = Finder(path)
    told = finder.timeline(seq)
    assert [one.number for one in told] == list(range(1, 12))
    paged: list[Any] = []
    while some := finder.timeline(seq, paged[-1].number if paged else 0, 5):
        paged += some
    assert paged == told
    assert finder.timeline(99) == []


def test_counts_by_lane_and_by_tenant(path: Path) -> None:
    teller = Teller()
    for number in range(5):
        teller.enqueue(2, tenant=f"t{number}", slo_ms=1_000)
    late = teller.enqueue(3, tenant="t1", slo_ms=60_000)
    teller.finish(late[0])
    teller.enqueue(queue="other")
    finder = indexed(path, teller)
    fast, slow = finder.counts("mail")
    assert (fast.slo_ms, fast.states) == (1_000, {JobState.READY: 10})
    assert (slow.slo_ms, slow.states) == (60_000, {JobState.READY: 2, JobState.DONE: 1})
    tenants = finder.tenants("mail", limit=2)
    assert [one.tenant for one in tenants] == ["t0", "t1"]
    assert tenants[1].states == {JobState.READY: 4, JobState.DONE: 1}
    rest = finder.tenants("mail", after="t1")
    assert [one.tenant for one in rest] == ["t2", "t3", "t4"]
    assert finder.counts("nobody's") == []
    assert finder.tenants("nobody's") == []


def test_dead_letters_are_grouped_by_what_they_died_of(path: Path) -> None:
    teller = Teller()
    seqs = teller.enqueue(6)
    teller.bury(seqs[0], text="order 17 is gone\nat line 3")
    teller.bury(seqs[1], text="order 1888 is gone\nat line 5")
    teller.bury(seqs[2], reason="timed out")
    teller.bury(seqs[3], text="order 5 is gone")
    teller.happen(events.Redriven, [seqs[3]])
    finder = indexed(path, teller)
    gone, timed_out = finder.dead_groups("mail")
    assert (gone.reason, gone.line) == ("failed", "order <number> is gone")
    assert (gone.count, gone.seq) == (2, seqs[1])
    assert (gone.first_ms, gone.last_ms) == (START_MS + 1_000, START_MS + 2_000)
    assert (timed_out.reason, timed_out.count) == ("timed out", 1)
    for by in By:
        queue = "mail" if by is By.ENQUEUED else None
        page = finder.search(Search(group=gone.group, by=by, queue=queue))
        assert [job.seq for job in page.jobs] == [seqs[1], seqs[0]]


def test_too_many_kinds_of_errors_share_a_group(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.search.tally.GROUPS_MAX", 3)
    teller = Teller()
    for seq, letter in zip(teller.enqueue(6), "abcdef", strict=True):
        teller.bury(seq, text=letter)
    groups = indexed(path, teller).dead_groups("mail")
    assert [(group.line, group.count) for group in groups] == [
        ("", 3),
        ("a", 1),
        ("b", 1),
        ("c", 1),
    ]


def test_jobs_are_found_by_the_reply_they_wait_for(path: Path) -> None:
    teller = Teller()
    one, two = teller.enqueue(2)
    teller.lease(one, two)
    teller.happen(events.Waited, [one, two], 1, 5, "order-1", teller.now_ms + 9_000)
    teller.happen(events.Replied, [one], "order-1", False, True)
    finder = indexed(path, teller)
    assert finder.waiting_for("mail", "order-1") == [two]
    assert finder.waiting_for("mail", "order-2") == []
