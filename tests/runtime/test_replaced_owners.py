"""An owner that was replaced and does not know it: nothing of what it does counts.

The fair task reader with levels lost tasks there, since its deletions were not fenced.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE

import msgspec
import pytest

from headway.core.commands import Ack, Cancel, Enqueue, Lease, Nack, Purge, Tick
from headway.core.spec import JobSpec
from headway.runtime import verify
from headway.runtime.errors import OwnerStopped
from headway.runtime.owner import Ask
from headway.runtime.records import unpack_heading
from headway.runtime.recovery import TOKENS_PER_EPOCH
from headway.runtime.scanning import job_of
from headway.runtime.views import LeasedJob
from headway.store.errors import Fenced
from headway.store.sqlite.store import SqliteStore
from tests.runtime import racer
from tests.runtime.racer import Said
from tests.runtime.reigns import LONG_MS, Reigns
from tests.store.places import InSqlite, Place

BACKLOG = 80
SECONDS_MAX = 120
"""Against hanging only."""
FILE = "partition.db"


def test_a_job_written_behind_unread_ones_waits_for_them(place: Place) -> None:
    """A bypass took what was written above the read level, and the rest was never read;
    here a job beyond the cut is not started, though memory has it.
    """
    reigns = Reigns(place)
    seqs = reigns.put(BACKLOG)
    assert reigns.turn().cut is not None
    step: list[Ask] = [Enqueue("q", [JobSpec()]), Lease(max=BACKLOG, lease_ms=LONG_MS)]
    came = [job.seq for job in reigns.say(*step)]
    assert came == seqs[: len(came)]
    assert came + reigns.drain() == [*seqs, BACKLOG + 1]


def test_an_ack_deletes_nothing_that_is_written_with_it(place: Place) -> None:
    """The level passed tasks that had a place but no row yet, and they were deleted;
    here a deletion names its jobs, and no range of them.
    """
    reigns = Reigns(place)
    reigns.put(BACKLOG)
    jobs = reigns.lease(BACKLOG)
    acks = Ack([job.token for job in jobs[1::2]])
    reigns.say(acks, Enqueue("q", [JobSpec(priority=1), JobSpec()]))
    acked = {job.seq for job in jobs[1::2]}
    left = [seq for seq in range(1, BACKLOG + 3) if seq not in acked]
    assert sorted(row[0] for row in reigns.store.jobs(list(range(100)))) == left
    reigns.take_over()
    reigns.say(Ack([job.token for job in jobs[::2]]))
    assert sorted(reigns.drain()) == sorted({*left} - {job.seq for job in jobs})


Late = Callable[[list[LeasedJob]], list[Ask]]


@pytest.mark.parametrize(
    "late",
    [
        lambda jobs: [Ack([job.token for job in jobs])],
        lambda jobs: [Nack(jobs[0].token, is_bury=True)],
        lambda jobs: [Lease(max=10)],
        lambda jobs: [Cancel(BACKLOG)],
        lambda jobs: [Purge("q")],
        lambda jobs: [Enqueue("q", [JobSpec(payload=b"late")])],
    ],
    ids=["ack", "nack", "lease", "cancel", "purge", "enqueue"],
)
def test_a_replaced_owner_takes_nothing_from_the_next_one(
    place: Place, late: Late
) -> None:
    """The old owner's collector deleted up to its level what the new one had written
    below it; here a deletion is a part of a commit, and that is fenced.
    """
    reigns = Reigns(place)
    old = reigns.put(BACKLOG)
    leased = reigns.lease(5)
    replaced = reigns.owner
    reigns.take_over()
    below = reigns.put(3, priority=1)
    with pytest.raises(OwnerStopped) as stopped:
        replaced.step(late(leased), reigns.now_ms)
    assert isinstance(stopped.value.__cause__, Fenced)
    with pytest.raises(OwnerStopped):
        replaced.step([Tick()], reigns.now_ms)
    assert reigns.drain() == below + old[5:]
    reigns.now_ms += LONG_MS
    assert sorted(reigns.drain()) == old[:5], "their leases were the new owner's, too"


@pytest.mark.parametrize("deeds_before", range(7))
def test_whenever_an_owner_is_replaced_its_jobs_are_the_next_ones(
    place: Place, deeds_before: int
) -> None:
    """A loss took nine steps: filled, read, acked, replaced, written below, acked by the
    old one, deleted, read by the new one, missed. Here it is replaced after any of them.
    """
    reigns = Reigns(place)
    leased: list[LeasedJob] = []
    deeds: list[Callable[[], Ask]] = [
        lambda: Enqueue("q", [JobSpec() for _ in range(BACKLOG)]),
        lambda: Lease(max=4, lease_ms=LONG_MS),
        lambda: Ack([leased[1].token]),
        lambda: Enqueue("q", [JobSpec(priority=1), JobSpec(priority=200)]),
        lambda: Lease(max=4, lease_ms=LONG_MS),
        lambda: Ack([leased[number].token for number in (0, 2, 5)]),
        lambda: Enqueue("q", [JobSpec(priority=1)]),
    ]
    for deed in deeds[:deeds_before]:
        leased += reigns.say(deed())
    acked = {leased[1].seq} if deeds_before > 2 else set()
    if deeds_before > 5:
        acked |= {leased[number].seq for number in (0, 2, 5)}
    replaced = reigns.owner
    reigns.take_over()
    below = reigns.put(2, priority=1)
    with pytest.raises(OwnerStopped) as stopped:
        replaced.step([deeds[deeds_before]()], reigns.now_ms)
    assert isinstance(stopped.value.__cause__, Fenced)
    came = reigns.drain()
    reigns.now_ms += LONG_MS
    came += reigns.drain()
    assert sorted(came) == sorted(set(range(1, below[-1] + 1)) - acked)


def test_tokens_and_epochs_never_come_twice(place: Place) -> None:
    """What an owner gave out before it was replaced is not what the next one means."""
    reigns = Reigns(place)
    reigns.put(BACKLOG)
    tokens: list[int] = []
    for epoch in range(2, 12):
        tokens += [job.token for job in reigns.lease(2)]
        reigns.take_over()
        assert reigns.owner.epoch == epoch
        assert max(tokens) < epoch * TOKENS_PER_EPOCH
    assert tokens == sorted(set(tokens))


def race(directory: Path, races: int, lock: str) -> list[list[Said]]:
    """Two processes at one file; answers what each was told."""
    Reigns(InSqlite(directory)).owner.close()
    said = [directory / "one", directory / "two"]
    command = [sys.executable, racer.__file__, str(directory / FILE)]
    racers = []
    for path in said:
        with path.open("wb") as out:
            args = [*command, path.name, str(races), lock]
            racers.append(subprocess.Popen(args, stdin=PIPE, stdout=out, stderr=PIPE))
    try:
        for process in racers:
            assert process.stderr is not None
            assert process.stderr.readline() == b"ready\n"
        for process in racers:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.flush()
        errors = [process.communicate(timeout=SECONDS_MAX)[1] for process in racers]
    finally:
        for process in racers:
            process.kill()
            process.communicate()
    assert errors == [b"", b""]
    decode = msgspec.json.Decoder(Said).decode
    return [[decode(line) for line in path.read_bytes().splitlines()] for path in said]


def check_race(directory: Path, races: int, *, is_locked: bool) -> None:
    told = race(directory, races, "locked" if is_locked else "unlocked")
    assert all(told), "both had their turn"
    fates: dict[str, list[Said]] = {"owns": [], "accepted": [], "refused": []}
    for said in (*told[0], *told[1]):
        fates[said.fate].append(said)
    epochs = [said.epoch for said in fates["owns"]]
    assert len(epochs) == len(set(epochs)), "two owners of one epoch"
    assert len(epochs) >= races - 1
    accepted = sorted(fates["accepted"], key=lambda said: said.seq)
    refused = [said.epoch for said in fates["refused"]]
    if is_locked:
        assert refused == []
    else:
        ended = sorted(epoch for epoch in epochs if epoch < races)
        # The last ones may end before they are replaced.
        told_so = sorted(epoch for epoch in refused if epoch < races)
        assert told_so == ended, "each was replaced, and was told so"
    reigns = [said.epoch for said in accepted]
    assert reigns == sorted(reigns), "a write came after the one who replaced its owner"
    assert stored(directory) == {said.seq: said.payload for said in accepted}
    assert len(accepted) == len({said.seq for said in accepted}) > 0
    assert verify.problems(directory / FILE) == []


def stored(directory: Path) -> dict[int, bytes]:
    """The payloads of all jobs in the file."""
    store = SqliteStore(directory / FILE)
    store.take_over()
    try:
        last = store.last_segment()
        assert last is not None
        last_seq = unpack_heading(last.blob).last_seq
        rows = store.jobs(list(range(1, last_seq + 1)))
    finally:
        store.close()
    return {row[0]: job_of(row).spec.payload for row in rows}


def test_two_processes_race_for_one_file(tmp_path: Path) -> None:
    """One owns it at a time, and what was accepted of either is there, and no more."""
    check_race(tmp_path, 200, is_locked=False)


def test_two_processes_race_for_the_lock_of_a_file(tmp_path: Path) -> None:
    """The lock comes before the epoch: nobody is replaced, and so nobody is refused."""
    check_race(tmp_path, 50, is_locked=True)


@pytest.mark.long
@pytest.mark.parametrize("is_locked", [False, True], ids=["epoch", "lock"])
def test_two_processes_race_a_thousand_times(tmp_path: Path, is_locked: bool) -> None:
    check_race(tmp_path, 1_000, is_locked=is_locked)
