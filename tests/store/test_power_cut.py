"""What is left after power cuts, crashes and failing disks: all that was acknowledged."""

from collections.abc import Iterator
from random import Random

import pytest

from headway.sim.disk import NO_SPACE, SYNC_FAILED, WRITE_FAILED, Fault, Operation
from headway.store.errors import StoreError, StoreFailed, StoreFull
from headway.store.sqlite import pragmas
from headway.store.sqlite.options import MIB
from tests.store.rows import Owner, batch, job
from tests.store.simulated import SimulatedPlace, Work, is_lost_or_torn, stopped

CUTS = 60
COMMITS = 40


@pytest.fixture
def place() -> Iterator[SimulatedPlace]:
    opened = SimulatedPlace()
    yield opened
    opened.close()


def faults_of(seed: int) -> list[str]:
    """Three lives of one disk, each ended by a power cut at some operation."""
    chance = Random(seed)
    place, work, found = SimulatedPlace(seed), Work(chance), []
    for _ in range(3):
        place.disk.stops_at = place.disk.operations + chance.randrange(1, 600)
        stopped(work, place, COMMITS)
        place.disk.power_cut(chance)
        try:
            store = place.open()
            store.take_over()
            found.append(is_lost_or_torn(store, work))
            store.close()
        except StoreError as error:
            found.append(str(error))
        found += place.problems()
    place.close()
    return [fault for fault in found if fault]


@pytest.mark.parametrize("seed", [*range(CUTS), 1131])  # 1131: cut while opening
def test_acknowledged_commits_survive_power_cuts_and_no_commit_is_torn(
    seed: int,
) -> None:
    assert faults_of(seed) == []


def test_the_power_cut_test_finds_a_store_that_does_not_flush_its_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lazy = [("synchronous", "NORMAL", 1)]
    kept = [pragma for pragma in pragmas.WRITING if pragma[0] != "synchronous"]
    monkeypatch.setattr(pragmas, "WRITING", (*kept, *lazy))
    assert any(faults_of(seed) for seed in range(10))


def test_a_killed_process_loses_nothing_it_had_committed(place: SimulatedPlace) -> None:
    chance = Random(5)
    work = Work(chance)
    for _ in range(20):
        place.disk.stops_at = place.disk.operations + chance.randrange(1, 600)
        stopped(work, place, COMMITS)
        place.disk.crash()
        store = place.open()
        store.take_over()
        assert is_lost_or_torn(store, work) == ""
        store.close()
        assert place.problems() == []


FAILURES: list[tuple[Operation, int, type[StoreError]]] = [
    ("write", NO_SPACE, StoreFull),
    ("write", WRITE_FAILED, StoreFailed),
    ("sync", SYNC_FAILED, StoreFailed),
]


@pytest.mark.parametrize(("on", "error", "kind"), FAILURES)
@pytest.mark.parametrize("seed", range(15))
def test_after_a_failed_write_or_flush_the_store_stops_and_reopens_whole(
    on: Operation, error: int, kind: type[StoreError], seed: int
) -> None:
    chance = Random(seed)
    place, work = SimulatedPlace(seed), Work(chance)
    store = place.open()
    work.go_on(store, 5)
    place.disk.faults = [Fault(on, error, after=chance.randrange(60))]
    with pytest.raises(kind):
        work.go_on(store, 500)
    for call in (store.last_segment, store.take_over, lambda: store.jobs([1])):
        with pytest.raises(kind):
            call()
    if kind is StoreFull:
        work.begun = work.acknowledged  # it is known that nothing was written
    again = place.open()
    again.take_over()
    assert is_lost_or_torn(again, work) == ""
    again.close()
    assert place.problems() == []
    place.close()


@pytest.mark.parametrize("seed", range(30))
def test_what_a_failed_flush_left_in_the_cache_is_not_lost_later(seed: int) -> None:
    """The kernel calls such pages clean: without being written again they go."""
    chance = Random(seed)
    place, work = SimulatedPlace(seed, wal_bytes=MIB), Work(chance)
    work.go_on(place.open(), 3)
    place.disk.crash()
    place.disk.faults = [Fault("sync", SYNC_FAILED, after=3)]
    assert stopped(work, place, 10)
    place.disk.crash()
    assert not stopped(work, place, 4)
    place.disk.power_cut(chance)
    store = place.open()
    store.take_over()
    assert is_lost_or_torn(store, work) == ""
    place.close()


def test_a_full_disk_is_known_to_have_written_nothing(place: SimulatedPlace) -> None:
    owner = Owner(place.open())
    owner.put(job(1))
    place.disk.faults = [Fault("write", NO_SPACE)]
    with pytest.raises(StoreFull):
        owner.put(job(2))
    again = Owner(place.open())
    assert again.store.jobs([1, 2]) == [job(1)]
    again.put(job(2))
    assert len(again.store.jobs([1, 2])) == 2


def test_a_failed_checkpoint_does_not_unsay_the_commit_before_it(
    place: SimulatedPlace,
) -> None:
    owner = Owner(place.open())
    place.disk.faults = [Fault("sync", SYNC_FAILED, after=2)]
    owner.commit(batch(puts=[job(seq, body=bytes(1000)) for seq in range(100)]))
    with pytest.raises(StoreFailed):
        owner.put(job(200))
    again = Owner(place.open())
    assert len(again.store.jobs(list(range(300)))) == 100


def test_a_slow_disk_only_takes_time(place: SimulatedPlace) -> None:
    owner = Owner(place.open())
    place.disk.faults = [Fault("sync", delay_ms=700, times=2)]
    for seq in range(3):
        owner.put(job(seq))
    assert place.disk.waited_ms == 1400
    assert len(owner.store.jobs([0, 1, 2])) == 3
