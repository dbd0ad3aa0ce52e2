"""The index says what history says, however it was fed, killed or begun anew."""

from contextlib import suppress
from pathlib import Path
from random import Random

import apsw
import pytest

from headway.core import events
from headway.core.events import Event
from headway.core.states import JobState
from headway.runtime.records import encode
from headway.runtime.views import HistoryPage
from headway.search import happening, lives
from headway.search.errors import NotUnderstood, OutOfOrder
from headway.search.finder import Finder
from headway.search.indexer import Indexer
from headway.search.keep import Keep
from headway.search.query import By, Search
from headway.store.port import Segment
from tests.runtime.written import WrittenFuzz
from tests.search.plain import PlainJob, check_index, numbered, retell, select
from tests.search.stories import START_MS, Teller, played


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.db"


def feed(path: Path, segments: list[Segment], draw: Random) -> None:
    """In batches of any size, some of which come twice or are killed half-way."""
    indexer = Indexer(path)
    start = 0
    while start < len(segments):
        end = start + 1 + draw.randrange(12)
        batch = segments[max(0, start - draw.randrange(2)) : end]
        if draw.random() < 0.3:
            kill_in_the_middle(indexer, batch)
            indexer.close()
            indexer = Indexer(path)
        indexer.apply(batch)
        start = end
    indexer.close()


def kill_in_the_middle(indexer: Indexer, batch: list[Segment]) -> None:
    """All is written, and at the end not committed."""
    before = indexer.place
    indexer._connection.set_commit_hook(lambda: True)
    with suppress(apsw.ConstraintError):
        indexer.apply(batch)
    assert indexer.place == before


def check_store(fuzz: WrittenFuzz, jobs: dict[int, PlainJob]) -> None:
    """Jobs that are open or dead stand in the store as they do in the index."""
    stored = fuzz.all_jobs()
    for seq, job in stored.items():
        told = jobs[seq]
        assert told.state is job.state
        assert told.attempt == job.attempt
        assert told.run_at_ms == job.run_at_ms
        assert told.generation == job.generation
        assert told.enqueued_ms == job.enqueued_ms
        assert told.labels == (job.spec.labels or {})
        if job.state is JobState.WAITING:
            assert told.reply_key == job.reply_key
    over = {jobs[seq].state for seq in jobs.keys() - stored.keys()}
    assert over <= {JobState.DONE, JobState.CANCELLED}


@pytest.mark.parametrize("seed", range(16))
def test_index_equals_store_and_history_however_it_was_fed(
    seed: int, path: Path
) -> None:
    fuzz, segments = played(seed)
    jobs = retell(numbered(segments))
    check_store(fuzz, jobs)
    feed(path, segments, Random(seed))
    check_index(path, jobs)
    indexer = Indexer(path)
    assert indexer.place.next == segments[-1].first + segments[-1].count
    assert indexer.apply(segments) == 0, "it is all there already"


@pytest.mark.parametrize("seed", range(3))
def test_pages_of_an_owner_do_as_well_as_commits(seed: int, path: Path) -> None:
    _, segments = played(seed)
    told = numbered(segments)
    indexer = Indexer(path)
    for first in range(0, len(told), 50):
        some = [event for _, event in told[first : first + 50]]
        assert indexer.apply_page(HistoryPage(first + 1, some)) == len(some)
    indexer.close()
    check_index(path, retell(told))


def test_events_that_do_not_follow_are_refused(path: Path) -> None:
    teller = Teller()
    teller.enqueue()
    teller.enqueue()
    indexer = Indexer(path)
    with pytest.raises(OutOfOrder, match="event 2 comes after 0"):
        indexer.apply(teller.segments[1:])
    assert indexer.place.next == 1


def test_a_second_writer_is_noticed_before_it_counts_anything_twice(
    path: Path,
) -> None:
    teller = Teller()
    teller.enqueue(3)
    one, two = Indexer(path), Indexer(path)
    one.apply(teller.segments)
    with pytest.raises(OutOfOrder, match="another process"):
        two.apply(teller.segments)
    check_index(path, retell(numbered(teller.segments)))


def test_a_gap_is_marked_and_open_jobs_are_doubtful_from_then_on(path: Path) -> None:
    teller = Teller()
    lost, done = teller.enqueue(2)
    teller.finish(done)
    indexer = Indexer(path)
    indexer.apply(teller.segments)
    before = teller.next
    teller.finish(lost)
    (seen,) = teller.enqueue()
    missed = len(teller.segments)
    teller.lease(seen)
    after = teller.segments[missed].first
    indexer.skip_to(after)
    indexer.apply(teller.segments[missed:])
    finder = Finder(path)
    (gap,) = finder.gaps()
    assert (gap.first, gap.next) == (before, after)
    assert finder.job(lost).is_doubtful
    assert not finder.job(done).is_doubtful
    found = finder.job(seen)
    assert (found.state, found.enqueued_ms) == (JobState.LEASED, None)
    assert not found.is_doubtful


@pytest.mark.parametrize(
    ("kind", "more", "state"),
    [
        (events.Extended, (9,), JobState.LEASED),
        (events.CancelRequested, (), JobState.LEASED),
        (events.Released, (1, 5), JobState.READY),
        (events.Replied, ("k", False, True), JobState.DONE),
        (events.Promoted, (), JobState.READY),
    ],
)
def test_a_job_met_in_the_middle_of_its_life_is_found(
    path: Path, kind: type, more: tuple[object, ...], state: JobState
) -> None:
    teller = Teller()
    (seq,) = teller.enqueue()
    teller.happen(kind, [seq], *more)
    indexer = Indexer(path)
    indexer.skip_to(2)
    indexer.apply(teller.segments[1:])
    finder = Finder(path)
    for by in By:
        (found,) = finder.search(Search(queue="mail", by=by)).jobs
        assert (found.seq, found.state) == (seq, state)
        assert found.changed_ms == teller.now_ms - 1_000


def test_doubtful_jobs_do_not_stay_for_ever(path: Path) -> None:
    teller = Teller()
    (doubtful,) = teller.enqueue()
    indexer = Indexer(path, Keep(age_ms=10_000, dead_age_ms=20_000))
    indexer.apply(teller.segments)
    teller.next += 5
    indexer.skip_to(teller.next)
    teller.now_ms += 15_000
    (sure,) = teller.enqueue()
    indexer.apply(teller.segments[-1:])
    assert indexer.tidy() == 0
    teller.now_ms += 15_000
    teller.enqueue()
    indexer.apply(teller.segments[-1:])
    assert indexer.tidy() == 1
    seqs = [seq for (seq,) in select(path, "SELECT seq FROM jobs")]
    assert doubtful not in seqs
    assert sure in seqs


def test_ended_jobs_go_by_age_with_all_that_was_told_of_them(path: Path) -> None:
    teller = Teller()
    old = teller.enqueue(3, tenant="a", labels={"region": "east"})
    teller.finish(*old[:2])
    teller.bury(old[2], text="no")
    young = teller.enqueue(2)
    teller.now_ms += 60_000
    teller.finish(young[0])
    indexer = Indexer(path, Keep(age_ms=30_000, dead_age_ms=30_000))
    indexer.apply(teller.segments)
    while indexer.tidy():
        pass
    jobs = retell(numbered(teller.segments))
    check_index(path, {seq: jobs[seq] for seq in young})


def test_ended_jobs_go_by_number_the_oldest_first(path: Path) -> None:
    teller = Teller()
    seqs = teller.enqueue(3_000)
    for first in range(0, 2_500, 500):
        teller.finish(*seqs[first : first + 500])
    indexer = Indexer(path, Keep(ended_max=100))
    indexer.apply(teller.segments)
    steps = 0
    while indexer.tidy():
        steps += 1
    assert steps == 3, "a thousand at a time"
    jobs = retell(numbered(teller.segments))
    check_index(path, {seq: jobs[seq] for seq in seqs[2_400:]})


def test_a_file_that_is_damaged_or_of_another_version_is_made_anew(
    path: Path,
) -> None:
    teller = Teller()
    teller.enqueue(3)
    for spoil in (b"not a database at all" * 100, b""):
        path.write_bytes(spoil)
        indexer = Indexer(path)
        assert indexer.place.next == 1
        indexer.apply(teller.segments)
        indexer.close()
        check_index(path, retell(numbered(teller.segments)))
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 99)
    connection.close()
    assert Indexer(path).place.next == 1


def test_heartbeats_prolong_the_lease_and_are_not_told(path: Path) -> None:
    teller = Teller()
    (seq,) = teller.enqueue()
    teller.lease(seq)
    indexer = Indexer(path)
    indexer.apply(teller.segments)
    finder = Finder(path)
    before = finder.job(seq)
    teller.happen(events.Extended, [seq], teller.now_ms + 99_000)
    indexer.apply(teller.segments)
    after = finder.job(seq)
    assert before.lease_until_ms != after.lease_until_ms
    assert before.changed_ms == after.changed_ms
    assert len(finder.timeline(seq)) == 2


def test_a_discarded_dead_letter_is_of_no_group_any_more(path: Path) -> None:
    teller = Teller()
    kept, discarded = teller.enqueue(2)
    teller.lease(kept, discarded)
    teller.bury(kept, discarded, text="no")
    indexer = Indexer(path, Keep(age_ms=5_000))
    indexer.apply(teller.segments)
    teller.happen(events.Discarded, [discarded])
    indexer.apply(teller.segments)
    check_index(path, retell(numbered(teller.segments)))
    (group,) = Finder(path).dead_groups("mail")
    assert (group.count, group.seq) == (1, kept)
    teller.now_ms += 10_000
    teller.enqueue()
    indexer.apply(teller.segments)
    assert indexer.tidy() == 1
    (group,) = Finder(path).dead_groups("mail")
    assert group.count == 1


def test_jobs_that_are_done_but_not_simply_done_keep_what_they_are(path: Path) -> None:
    """One of each that differs from a plain one in one thing, among many that do not."""
    teller = Teller()
    plain = teller.enqueue(100)
    (labelled,) = teller.enqueue(labels={"region": "east"})
    seqs = teller.enqueue(6, tenant="a", kind="k")
    retried, redriven, replied, asked, put_off, lost = seqs
    teller.lease(*seqs)
    more = (1, 5, "failed", "no", teller.now_ms)
    teller.happen(events.Retried, [retried], *more)
    teller.bury(redriven, reason="failed", text="no")
    teller.happen(events.Redriven, [redriven])
    teller.happen(events.Waited, [replied], 1, 5, "key", teller.now_ms + 9)
    teller.happen(events.CancelRequested, [asked])
    teller.happen(events.Rescheduled, [put_off], teller.now_ms + 500)
    teller.happen(events.Lost, [lost], 1, 5)
    teller.happen(events.Replied, [replied], "key", False, True)
    teller.finish(*plain, labelled, retried, redriven, asked, put_off, lost)
    indexer = Indexer(path)
    indexer.apply(teller.segments)
    check_index(path, retell(numbered(teller.segments)))
    finder = Finder(path)
    assert finder.job(asked).is_cancel_requested
    assert not finder.job(plain[0]).is_cancel_requested
    first = finder.job(plain[0])
    assert (first.priority, first.cost, first.worker) == (100, 1, "w")
    assert first.lease_until_ms is None


def test_history_that_is_not_understood_is_left_alone(path: Path) -> None:
    teller = Teller()
    teller.enqueue()
    known, *_ = teller.segments
    indexer = Indexer(path)
    short = encode((1, {}, [("enqueue", START_MS, 2)]))
    for blob in (short, known.blob.replace(b"enqueue", b"unheard")):
        with pytest.raises(NotUnderstood, match="events 1 to 1"):
            indexer.apply([known._replace(blob=blob)])
        assert indexer.place.next == 1
    assert indexer.apply([known]) == 1


@pytest.mark.parametrize(
    ("kind", "places"),
    [
        (
            events.Enqueued,
            {
                "at_ms": lives.AT_MS,
                "seq": lives.SEQ,
                "generation": lives.GENERATION,
                "queue": lives.QUEUE,
                "slo_ms": lives.SLO_MS,
                "tenant": lives.TENANT,
                "kind": lives.KIND,
                "run_at_ms": happening.RUN_AT_MS,
                "priority": happening.PRIORITY,
                "cost": happening.COST,
                "labels": happening.LABELS,
            },
        ),
        (events.Rescheduled, {"run_at_ms": happening.RUN_AT_MS}),
        (
            events.Leased,
            {
                "attempt": happening.ATTEMPT,
                "worker": happening.WORKER,
                "lease_until_ms": happening.LEASE_UNTIL_MS,
            },
        ),
        (events.Extended, {"lease_until_ms": happening.MORE}),
        (events.Acked, {"attempt": happening.ATTEMPT}),
        (events.Released, {"attempt": happening.ATTEMPT}),
        (events.Lost, {"attempt": happening.ATTEMPT}),
        (
            events.Retried,
            {
                "attempt": happening.ATTEMPT,
                "reason": happening.FAILURE,
                "text": happening.FAILURE + 1,
                "run_at_ms": happening.FAILURE + 2,
            },
        ),
        (
            events.Waited,
            {"attempt": happening.ATTEMPT, "reply_key": happening.REPLY_KEY},
        ),
        (events.Replied, {"is_done": happening.IS_DONE}),
        (
            events.Buried,
            {
                "attempt": happening.ATTEMPT,
                "reason": happening.DEATH,
                "text": happening.DEATH + 1,
            },
        ),
    ],
)
def test_fields_are_read_where_events_have_them(
    kind: type[Event], places: dict[str, int]
) -> None:
    """The tag comes before them."""
    fields = ("", *kind.__struct_fields__)
    assert {name: fields.index(name) for name in places} == places
