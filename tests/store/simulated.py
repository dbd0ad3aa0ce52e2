"""A store on a simulated disk, and work that keeps account of what was acknowledged."""

from pathlib import Path
from random import Random

from headway.sim.disk import SimulatedDisk
from headway.store.errors import StoreFailed
from headway.store.port import START, Batch, Store
from headway.store.sqlite.options import SqliteOptions
from headway.store.sqlite.store import SqliteStore
from headway.store.sqlite.verify import problems
from tests.store.rows import Owner, batch, job, segment

PATH = Path("partition.db")
SMALL_WAL_BYTES = 64 * 1024


class SimulatedPlace:
    """The place of one store; its log is short, so that checkpoints happen in tests."""

    def __init__(self, seed: int = 0, wal_bytes: int = SMALL_WAL_BYTES) -> None:
        self.disk = SimulatedDisk(seed)
        self.options = SqliteOptions(
            vfs=self.disk.name,
            is_exclusive=True,
            wal_passive_bytes=wal_bytes,
            wal_truncate_bytes=4 * wal_bytes,
        )
        self._opened: list[SqliteStore] = []

    def open(self) -> SqliteStore:
        store = SqliteStore(PATH, self.options)
        self._opened.append(store)
        return store

    def problems(self) -> list[str]:
        return problems(PATH, self.options)

    def close(self) -> None:
        for store in self._opened:
            store.close()
        self.disk.close()


class Work:
    """Commits of a few jobs each. Commit n puts its jobs and writes event n."""

    def __init__(self, chance: Random) -> None:
        self.acknowledged = 0
        self.begun = 0
        self._chance = chance

    def go_on(self, store: Store, commits: int) -> None:
        """Raises what the store raises; it knows then how far it came."""
        owner = Owner(store)
        last = store.last_segment()
        self.begun = self.acknowledged = 0 if last is None else last.first
        for _ in range(commits):
            self.begun += 1
            owner.commit(self._batch(self.begun))
            self.acknowledged = self.begun

    def _batch(self, number: int) -> Batch:
        jobs = range(number * 10, number * 10 + 3)
        body = bytes([number % 256]) * self._chance.choice([10, 300, 3000])
        ends = [(number - 1) * 10] if number > 1 else []
        return batch(
            puts=[job(seq, turn=b"%d" % number, body=body) for seq in jobs],
            moves=[(1, b"moved", number, 0, b"changed", jobs[1])],
            ends=ends,
            segment=segment(number),
        )


def is_lost_or_torn(store: Store, work: Work) -> str:
    """What a reopened store says against the account; empty if they agree."""
    last = store.last_segment()
    found = 0 if last is None else last.first
    if not work.acknowledged <= found <= work.begun:
        return f"{found} commits, {work.acknowledged} acknowledged, {work.begun} begun"
    expected = {number * 10 + at for number in range(1, found + 1) for at in (1, 2)}
    if found:
        expected.add(found * 10)
    rows = store.turns(0, None, 10**6, 10) + store.rows(1, b"moved", START, 10**6)
    seqs = sorted(row[0] for row in rows)
    if seqs != sorted(expected):
        return f"{len(seqs)} jobs, {len(expected)} expected"
    if any(set(row[6]) != {row[0] // 10 % 256} for row in rows):
        return "a body is not what it was"
    return ""


def stopped(work: Work, place: SimulatedPlace, commits: int) -> bool:
    """Works until the store fails; answers whether it did."""
    try:
        work.go_on(place.open(), commits)
    except StoreFailed:
        return True
    return False
