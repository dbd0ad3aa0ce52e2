"""Random batches on every store, against plain dicts."""

import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from headway.store.port import HELD, Batch, Position, Segment, Store
from headway.store.sqlite.snapshot import Snapshot
from headway.store.sqlite.verify import problems
from tests.postgres import shared
from tests.postgres.shared import InPostgres
from tests.store.model import Model
from tests.store.places import (
    InMemory,
    InSqlite,
    InSqliteBundled,
    InSqliteMixed,
    InSqliteSorted,
    InSqliteThinned,
)
from tests.store.rows import Owner
from tests.store.simulated import SimulatedPlace

LANES = st.integers(-3, 3)
TURNS = st.sampled_from([b"", b"\x00", b"a", b"a\x00", b"a\xff", b"\xff"])
SORT_KEYS = st.integers(-2, 2) | st.integers(-(2**63), 2**63 - 1)
CHANGES = st.none() | st.binary(max_size=3)
BODIES = st.binary(max_size=3) | st.sampled_from(
    [bytes(1024), bytes(1025), bytes(9000)]
)
RUNS = st.sampled_from([1, 1, 1, 2, 5])
"""Jobs that come to the same place, one after the other."""
KINDS = st.sampled_from(["", "limit", "queue"])
NAMES = st.binary(max_size=2)
COUNTS = st.integers(0, 3)
QUEUES = st.sampled_from(["", "mail", "a\x00b"])


class StoreMachine(RuleBasedStateMachine):
    """Commits, reads, reopens; the store and the model must agree all along."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.seq = 0
        self.left = 0
        """Results that were ever written: as many as their newest seq says."""
        self.start()

    def start(self) -> None:
        self.place: Any = InMemory(Path())
        self.owner = Owner(self.place.open())

    @property
    def store(self) -> Store:
        return self.owner.store

    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        drawn = data.draw(st.lists(st.tuples(places(), BODIES, RUNS), max_size=6))
        rows = [(where, body) for where, body, count in drawn for _ in range(count)]
        puts = [
            (seq, *where, body) for seq, (where, body) in enumerate(rows, self.seq + 1)
        ]
        self.seq += len(puts)
        known = sorted({*self.model.jobs, *(row[0] for row in puts)})
        moved = data.draw(st.lists(st.sampled_from(known), max_size=4)) if known else []
        ends = st.lists(st.sampled_from(known), max_size=3, unique=True)
        batch = Batch(
            puts=puts,
            moves=[(*data.draw(places()), seq) for seq in moved],
            ends=[(seq,) for seq in data.draw(ends)] if known else [],
            facts=data.draw(
                st.lists(st.tuples(KINDS, NAMES, CHANGES), max_size=4),
            ),
            keys=data.draw(st.lists(idempotency_keys(), max_size=4)),
            segment=data.draw(st.none() | segments(self.model.next_number)),
            keys_before_ms=data.draw(st.none() | st.integers(0, 20)),
            history_before=data.draw(st.none() | st.integers(0, 30)),
            results=[
                (seq, data.draw(st.integers(0, 9)), data.draw(BODIES))
                for seq in range(self.left + 1, self.left + data.draw(COUNTS) + 1)
            ],
            results_over=data.draw(
                st.none() | st.tuples(st.integers(0, 9), st.integers(0, 4))
            ),
        )
        self.left += len(batch.results)
        self.owner.commit(batch)
        self.model.commit(batch)

    @rule(lane=LANES, turn=TURNS, after=st.tuples(SORT_KEYS, SORT_KEYS, SORT_KEYS))
    def read_rows(self, lane: int, turn: bytes, after: tuple[int, int, int]) -> None:
        position = Position(*after)
        expected = self.model.rows(lane, turn, position, 3)
        assert self.store.rows(lane, turn, position, 3) == expected

    @rule(
        lane=LANES,
        after=st.none() | TURNS,
        limit=st.integers(0, 4),
        each=st.integers(0, 3),
    )
    def read_turns(self, lane: int, after: bytes | None, limit: int, each: int) -> None:
        expected = self.model.turns(lane, after, limit, each)
        assert self.store.turns(lane, after, limit, each) == expected

    @rule(first=st.integers(0, 40), most_bytes=st.integers(0, 20))
    def read_history(self, first: int, most_bytes: int) -> None:
        history = self.model.history
        if history and max(first, 1) >= history[0].first:
            found = self.store.history(first, most_bytes)
            wanted = [part for part in history if part.first + part.count > first]
            assert found == wanted[: len(found)]
            assert bool(found) == bool(wanted)

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.owner = Owner(self.place.open())

    @invariant()
    def agrees(self) -> None:
        jobs = self.store.jobs(list(range(self.seq + 2)))
        assert {row[0]: row for row in jobs} == self.model.jobs
        assert len(jobs) == len(self.model.jobs)
        for kind in ("", "limit", "queue"):
            of_kind = [(k, v) for (at, k), v in self.model.facts.items() if at == kind]
            assert self.store.facts(kind) == sorted(of_kind)
        names = list(self.model.keys)
        assert sorted(self.store.find_keys(names)) == sorted(self.model.keys.values())
        last = self.model.history[-1] if self.model.history else None
        assert self.store.last_segment() == last
        results = self.store.results(list(range(self.left + 2)))
        assert {result[0]: result for result in results} == self.model.results
        overs = [until_ms for _, until_ms, _ in self.model.results.values()]
        assert self.store.first_over_ms() == min(overs, default=None)

    def teardown(self) -> None:
        self.place.close()


class SqliteMachine(StoreMachine):
    kind = InSqlite

    def start(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.place = self.kind(self.directory)
        self.owner = Owner(self.place.open())

    @invariant()
    def is_seen_from_beside(self) -> None:
        """Whoever looks at the file sees what is pending, too."""
        with Snapshot(self.place.path) as snapshot:
            assert list(snapshot.rows()) == sorted(self.model.jobs.values())
            assert snapshot.jobs_count() == len(self.model.jobs)
            early = sorted(self.model.jobs.keys() & self.model.results.keys())
            assert [seq for (seq,) in snapshot.early_results()] == early
        assert problems(self.place.path) == []

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.directory)


class SortedMachine(SqliteMachine):
    kind = InSqliteSorted


class ThinnedMachine(SqliteMachine):
    kind = InSqliteThinned


class MixedMachine(SqliteMachine):
    kind = InSqliteMixed


class BundledMachine(SqliteMachine):
    kind = InSqliteBundled


class PostgresMachine(StoreMachine):
    def start(self) -> None:
        self.place = InPostgres()
        self.owner = Owner(self.place.open())


class SimulatedMachine(StoreMachine):
    """Here the power may be cut between two commits, and the process may die."""

    def start(self) -> None:
        self.place = SimulatedPlace(wal_bytes=20_000)
        self.owner = Owner(self.place.open())

    @rule(
        pending_rows=st.sampled_from([0, 5, 4_096]),
        kib=st.sampled_from([1, 4_096]),
        least=st.sampled_from([2, 16]),
    )
    def reopen_with(self, pending_rows: int, kib: int, least: int) -> None:
        self.store.close()
        options = {
            "pending_rows": pending_rows,
            "pending_bytes": kib * 1_024,
            "bundle_least": least,
        }
        self.place.options = msgspec.structs.replace(self.place.options, **options)
        self.owner = Owner(self.place.open())

    @rule(seed=st.integers(0, 1000), is_power=st.booleans())
    @precondition(lambda self: self.seq)
    def die(self, seed: int, is_power: bool) -> None:
        if is_power:
            self.place.disk.power_cut(Random(seed))
        else:
            self.place.disk.crash()
        self.owner = Owner(self.place.open())


def places() -> st.SearchStrategy[tuple[int, bytes, int, int, bytes | None]]:
    """Anywhere, and often among the leased: stores may keep those apart."""
    anywhere = st.tuples(LANES, TURNS, SORT_KEYS, SORT_KEYS, CHANGES)
    return anywhere | CHANGES.map(lambda change: (HELD, b"", 0, 0, change))


def idempotency_keys() -> st.SearchStrategy[tuple[str, str, int, bytes, int]]:
    return st.tuples(QUEUES, QUEUES, st.integers(0, 9), NAMES, st.integers(0, 30))


def segments(first: int) -> st.SearchStrategy[Segment]:
    rest = st.tuples(st.integers(1, 5), st.integers(0, 99), st.binary(max_size=12))
    return rest.map(lambda parts: Segment(first, *parts))


def check(machine: type[StoreMachine], examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=examples, stateful_step_count=25, deadline=None),
    )


def test_memory_store_agrees_with_the_model() -> None:
    check(StoreMachine, 60)


@pytest.mark.parametrize(
    "machine",
    [SqliteMachine, SortedMachine, ThinnedMachine, MixedMachine, BundledMachine],
)
def test_sqlite_store_agrees_with_the_model(machine: type[StoreMachine]) -> None:
    check(machine, 15)


def test_postgres_store_agrees_with_the_model() -> None:
    shared.cluster()
    check(PostgresMachine, 10)


@pytest.mark.long
def test_postgres_store_agrees_with_the_model_for_long() -> None:
    shared.cluster()
    check(PostgresMachine, 300)


def test_sqlite_store_agrees_with_the_model_through_crashes_and_power_cuts() -> None:
    check(SimulatedMachine, 60)
