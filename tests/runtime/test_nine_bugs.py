"""Nine bugs of a fair task reader with levels, acks and a buffer, each tried here.

A story goes as near to the steps of the bug as this design lets it; the table in
docs/decisions/0007-memory.md says what rules each one out.
"""

import msgspec
import pytest

from headway.core.bounds import Bounds
from headway.core.commands import (
    Ack,
    Cancel,
    Enqueue,
    Lease,
    Nack,
    Purge,
    Release,
    Tick,
)
from headway.core.config import Concurrency, Limit, Order, Rate
from headway.core.spec import JobSpec
from headway.core.turn import ROWS_NOTED
from headway.runtime.errors import OwnerStopped
from headway.runtime.reading import TURNS_AT_ONCE
from tests.runtime.reigns import LONG_MS, TINY, Reigns
from tests.store.places import Place

MANY = 2 * ROWS_NOTED
"""So many jobs of one turn that memory lets go of most of them."""


# 1. A loop took one element too many at the size limit, and dropped it.


@pytest.mark.parametrize("has_restart", [False, True])
def test_1_nothing_is_dropped_where_a_buffer_ends(
    place: Place, has_restart: bool
) -> None:
    """The task after the last that fitted was lost; a cut names the last one kept."""
    reigns = Reigns(place)
    for count in range(ROWS_NOTED - 1, ROWS_NOTED + 6):
        seqs = reigns.put(count)
        if has_restart:
            reigns.take_over()
        assert reigns.drain() == seqs, count


@pytest.mark.parametrize("beyond", [-1, 0, 1])
@pytest.mark.parametrize("pages", [1, 2])
def test_1_nothing_is_dropped_where_a_page_of_tenants_ends(
    place: Place, pages: int, beyond: int
) -> None:
    """The same of turns: the next page begins after the last name of this one."""
    reigns = Reigns(place)
    count = pages * TURNS_AT_ONCE + beyond
    seqs = reigns.enqueue(*(JobSpec(tenant=f"t{number}") for number in range(count)))
    reigns.take_over()
    assert sorted(reigns.drain(most=100)) == seqs


def test_1_nothing_is_dropped_where_scheduled_jobs_leave_memory(place: Place) -> None:
    """The same of time: of jobs of one millisecond some are kept, and some are not."""
    reigns = Reigns(place)
    for count in range(1, 3 * TINY.scheduled_max):
        seqs = reigns.put(count, delay_ms=1_000)
        reigns.now_ms += 1_000
        assert sorted(reigns.drain()) == seqs, count


# 2. Acks above the cut were kept, and the level jumped over what was evicted.


def test_2_what_ends_beyond_the_cut_takes_nothing_with_it(place: Place) -> None:
    """An ack of a later task vouched for earlier ones; here an end moves no cut."""
    reigns = Reigns(place)
    usual = reigns.put(ROWS_NOTED - 4)
    leased = reigns.lease(3)
    urgent = reigns.put(MANY, priority=1)
    cut = reigns.turn().cut
    assert cut is not None
    assert cut[0] == 1, "all of the usual ones are beyond it"
    reigns.say(Ack([job.token for job in leased]))
    reigns.say(*(Cancel(seq) for seq in usual[-3:]))
    cut = reigns.turn().cut
    assert cut is not None
    assert cut[0] == 1, "it has moved by reading only"
    assert reigns.drain() == urgent + usual[3:-3]


# 3. After a failed write with an empty buffer nothing was read any more.


@pytest.mark.parametrize("fails", ["before", "after"])
def test_3_after_a_failed_write_the_next_owner_reads_what_there_is(
    place: Place, fails: str
) -> None:
    """The reader believed it was at the end; here its owner ends with the write."""
    reigns = Reigns(place)
    reigns.put(2)
    assert reigns.drain() == [1, 2]
    reigns.store.fails = fails
    with pytest.raises(OwnerStopped):
        reigns.put(2)
    reigns.store.fails = None
    with pytest.raises(OwnerStopped):
        reigns.say(Lease())
    reigns.take_over()
    assert reigns.drain() == ([3, 4] if fails == "after" else [])
    assert reigns.drain() == []
    assert reigns.put(1) == reigns.drain()


def test_3_a_turn_of_which_memory_has_nothing_left_is_read_on(place: Place) -> None:
    """With only acks in the buffer the level fell back; a cut stays, and is read from."""
    reigns = Reigns(place)
    seqs = reigns.put(MANY)
    while len(reigns.book.jobs) < len(seqs):
        here = sorted(reigns.book.jobs)
        reigns.say(*(Cancel(seq) for seq in here))
        seqs = [seq for seq in seqs if seq not in here]
        assert set(reigns.book.jobs).isdisjoint(here)
        assert reigns.book.jobs, "what comes next is in memory again"
    assert reigns.drain() == seqs


# 4. What was written during a read was lost.


@pytest.mark.parametrize("priority", [1, 100, 200])
@pytest.mark.parametrize("tenants", [1, 9])
def test_4_what_is_written_in_the_step_that_reads_is_kept(
    place: Place, tenants: int, priority: int
) -> None:
    """The read ended above tasks it had not seen; here no write comes in between."""
    reigns = Reigns(place)
    came: list[int] = []
    for count in range(ROWS_NOTED + 1, ROWS_NOTED + 9):
        reigns.enqueue(*(JobSpec(tenant=f"t{n % tenants}") for n in range(count)))
        for number in range(count // 4):
            spec = JobSpec(tenant=f"t{number % tenants}", priority=priority)
            jobs = reigns.say(Enqueue("q", [spec]), Lease(max=6, lease_ms=LONG_MS))
            came += [job.seq for job in jobs]
            reigns.now_ms += 1
        came += reigns.drain()
        assert sorted(came) == list(range(1, reigns.book.last_seq + 1)), count


# 5. A batch of expired tasks only was read again and again.


@pytest.mark.parametrize("tenants", [1, 20])
@pytest.mark.parametrize("has_restart", [False, True])
def test_5_pages_of_jobs_that_are_all_over_are_read_once(
    place: Place, has_restart: bool, tenants: int
) -> None:
    """Nothing was kept of the batch, so nothing moved; here what is over moves, too."""
    reigns = Reigns(place)
    old = [JobSpec(tenant=f"t{n % tenants}", lifetime_ms=500) for n in range(MANY)]
    reigns.enqueue(*old)
    live = reigns.enqueue(*(JobSpec(tenant=f"t{n}") for n in range(tenants)))
    reigns.now_ms += 1_000
    if has_restart:
        reigns.take_over()
    reigns.store.reads = 0
    assert sorted(reigns.drain()) == live
    assert not reigns.is_reading()
    assert reigns.store.reads <= MANY + 20, "a page holds two of them or more"
    reigns.store.reads = 0
    for _ in range(5):
        reigns.say(Tick())
    assert reigns.store.reads == 0


# 6. A timer fired while a read was pending, and both waited for each other.


@pytest.mark.parametrize("has_restart", [False, True])
@pytest.mark.parametrize("before_ms", [0, 1, 2])
def test_6_a_retry_that_comes_due_before_a_read_is_handed_out(
    place: Place, has_restart: bool, before_ms: int
) -> None:
    """A flag said that somebody would read; here a read is named until it was done."""
    reigns = Reigns(place, Bounds(8, 3, scheduled_max=4, reads_max=1))
    reigns.put(10)
    failed = reigns.lease(10)
    reigns.enqueue(*(JobSpec(tenant=f"t{n}") for n in range(TURNS_AT_ONCE + 20)))
    reigns.say(*(Nack(job.token, retry_in_ms=1_000) for job in failed))
    reigns.now_ms += 1_000 - before_ms
    if has_restart:
        reigns.take_over()
        assert reigns.is_reading()
    for _ in range(4):
        reigns.say(Tick())
        reigns.now_ms += 1
    assert sorted(reigns.drain(most=20)) == list(range(1, TURNS_AT_ONCE + 31))


# 7. A task that was acked, evicted and read again was dropped, and held the level.


@pytest.mark.parametrize("verb", ["ack", "cancel", "purge"])
def test_7_a_job_that_ends_has_no_row_after_that_commit(
    place: Place, verb: str
) -> None:
    """Acks outlived their tasks in a cache; here an end and its row go together."""
    reigns = Reigns(place)
    ended = reigns.put(5, tenant="a")
    others = reigns.put(MANY, tenant="b")
    match verb:
        case "ack":
            jobs = reigns.lease(10)
            reigns.say(Ack([job.token for job in jobs]))
            ended = [job.seq for job in jobs]
            others = [seq for seq in others if seq not in ended]
        case "cancel":
            reigns.say(*(Cancel(seq) for seq in ended))
        case _:
            reigns.say(Purge("q", "a"))
    left = {row[0] for row in reigns.store.jobs([*ended, *others])}
    assert left.isdisjoint(ended)
    reigns.take_over()
    came = reigns.drain()
    assert set(others) <= set(came)
    assert set(came).isdisjoint(ended)
    assert reigns.store.jobs(list(range(1, reigns.book.last_seq + 1))) == []


# 8. A head at its rate limit held back all other keys.


@pytest.mark.parametrize("has_restart", [False, True])
@pytest.mark.parametrize("per", ["tenant", "kind"])
@pytest.mark.parametrize(
    "limit", [Rate("pace", 1, LONG_MS), Concurrency("slots", 1)], ids=["rate", "slots"]
)
def test_8_a_head_at_its_limit_holds_back_its_own_only(
    place: Place, limit: Limit, per: str, has_restart: bool
) -> None:
    """All keys stood in one line; here what is stopped leaves it, with its kind alone."""
    reigns = Reigns(place, Bounds(jobs_max=8, turns_max=20, scheduled_max=4))
    reigns.configure(msgspec.structs.replace(limit, per=per))
    reigns.put(MANY, **{per: "a"}, slo_ms=1_000)
    reigns.put(MANY, **{per: "a"}, slo_ms=2_000)
    others = [reigns.put(1, **{per: name})[0] for name in "bcdef"]
    if has_restart:
        reigns.take_over()
        # A rate begins anew with nothing saved.
        reigns.now_ms += LONG_MS
        reigns.say(Tick())
    came = [job.seq for job in reigns.lease(50)]
    assert len(came) == 6
    assert set(others) < set(came)


# 9. A level moved backwards.


def test_9_the_base_of_a_lane_never_moves_back(place: Place) -> None:
    """It followed whatever came last; here it follows starts, and only upwards."""
    reigns = Reigns(place, Bounds())
    (lane,) = reigns.book.queues["q"].lanes.values()
    tenant_of = {seq: name for name in "abc" for seq in reigns.put(40, tenant=name)}
    bases = [0]
    for tenant in "abcabc":
        jobs = reigns.lease(12)
        bases.append(lane.base)
        unused = [job.token for job in jobs if tenant_of[job.seq] == tenant]
        reigns.say(Release(unused))
        for _ in unused:
            reigns.lease(1)
            bases.append(lane.base)
    assert bases == sorted(bases)
    assert bases[-1] > 0


@pytest.mark.parametrize("order", [Order.PRIORITY, Order.TIME, Order.FAIR])
@pytest.mark.parametrize("every", [1, 3])
def test_9_what_is_written_before_the_place_of_reading_comes_once(
    place: Place, order: Order, every: int
) -> None:
    """A level had to go back for it, and over what was done; here what is done is gone."""
    reigns = Reigns(place)
    reigns.configure(order=order)
    reigns.put(MANY)
    came: list[int] = []
    for number in range(20):
        jobs = reigns.lease(5)
        reigns.say(Ack([job.token for job in jobs]))
        came += [job.seq for job in jobs]
        reigns.put(1, priority=1, run_at_ms=reigns.now_ms - 1_000)
        if number % every == 0:
            reigns.take_over()
    came += reigns.drain()
    reigns.now_ms += 2 * LONG_MS
    came += reigns.drain()
    assert sorted(came) == list(range(1, MANY + 21))
