"""P1, P10: an owner on a disk that loses its power, fills up or fails.

The load and the account are those of the killed processes, in virtual time.
"""

from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from random import Random
from typing import Any

import apsw
import pytest

import headway
from headway.runtime.clock import Clock
from headway.runtime.errors import OwnerStopped
from headway.runtime.owner import Ask, Owner
from headway.sim.disk import NO_SPACE, SYNC_FAILED, WRITE_FAILED, Fault, Operation
from headway.store.errors import StoreError
from headway.store.sqlite import pragmas
from tests.faults.crash import jobs
from tests.faults.crash.account import Account
from tests.faults.crash.drain import drain
from tests.faults.crash.load import Hand, Told
from tests.store.simulated import SimulatedPlace

LIVES = 3
ACTS = 40


class Virtual(Clock):
    """Time that passes when somebody waits, and a little with every command."""

    def __init__(self) -> None:
        self.at_ms = 1_000_000

    def now_ms(self) -> int:
        return self.at_ms


class Direct:
    """A link without a thread: the owner decides while its caller waits."""

    def __init__(self, owner: Owner, clock: Virtual) -> None:
        self._owner = owner
        self._clock = clock

    def submit(self, ask: Ask) -> Future[Any]:
        future: Future[Any] = Future()
        asks = [ask]
        while not future.done():
            self._clock.at_ms += 1
            for answered, answer in self._owner.step(asks, self._clock.at_ms):
                if answered is ask:
                    future.set_result(answer)
            asks = []
            next_ms = self._owner.next_ms()
            if not future.done() and next_ms is not None:
                self._clock.at_ms = max(self._clock.at_ms, next_ms)
        return future

    def close(self) -> None:
        self._owner.close()


class World:
    """One disk, the owners that live on it one after the other, and the account."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.place = SimulatedPlace(seed)
        self.disk = self.place.disk
        self.account = Account()
        self.clock = Virtual()
        self.owner: Owner | None = None
        self._seed = seed
        self._lives = 0

    def live(self, acts: int) -> None:
        """Works so long; raises what stops it."""
        told = Told(
            seed=self._seed * 1_000 + self._lives,
            leases_ms=[jobs.LONG_MS, jobs.SHORT_MS],
            again=self.account.unknown_keyed(),
            held=self.account.long_held()[:5],
        )
        self._lives += 1
        self.owner = Owner(self.place.open())
        self.owner.take_over(self.clock)
        queue = headway.Headway(Direct(self.owner, self.clock))
        for config in jobs.configs():
            queue.configure(config)
        hand = Hand(queue, told, "hand", deque(), self.account.hear)
        hand.take_up()
        for _ in range(acts):
            if self.chance.random() < 0.5:
                hand.produce()
            else:
                hand.work()
        with suppress(apsw.Error):  # closing copies the log; that may fail unheard
            queue.close()

    def check(self) -> None:
        """A last owner drains what is there."""
        store = self.place.open()
        owner = Owner(store)
        owner.take_over(self.clock)
        drain(owner, store, self.account, self.clock.at_ms)
        owner.close()
        self.account.check_drained()
        self.account.faults += self.place.problems()
        assert self.account.faults == []
        assert len(self.account.delivered) >= len(self.account.done)
        self.place.close()


def cut(seed: int) -> int:
    """Several lives of a disk, each ended by a power cut; answers how many were."""
    world, cuts = World(seed), 0
    for _ in range(LIVES):
        world.disk.stops_at = world.disk.operations + world.chance.randrange(1, 900)
        try:
            world.live(ACTS)
        except (OwnerStopped, StoreError):
            cuts += 1
        world.disk.power_cut(world.chance)
        world.account.end_life()
    world.check()
    return cuts


@pytest.mark.parametrize("first", range(0, 24, 6))
def test_what_an_owner_answered_survives_power_cuts(first: int) -> None:
    """72 cuts, most of them in the middle of something."""
    assert sum(cut(seed) for seed in range(first, first + 6)) >= 9


def test_the_power_cut_test_finds_an_owner_that_does_not_flush(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lazy = [("synchronous", "NORMAL", 1)]
    kept = [pragma for pragma in pragmas.WRITING if pragma[0] != "synchronous"]
    monkeypatch.setattr(pragmas, "WRITING", (*kept, *lazy))
    assert any(is_at_fault(seed) for seed in range(10))


def is_at_fault(seed: int) -> bool:
    try:
        cut(seed)
    except (AssertionError, StoreError):
        return True
    return False


@pytest.mark.long
@pytest.mark.parametrize("first", range(1_000, 1_700, 20))
def test_what_an_owner_answered_survives_two_thousand_power_cuts(first: int) -> None:
    assert sum(cut(seed) for seed in range(first, first + 20)) >= 30


FAILURES: list[tuple[Operation, int, str]] = [
    ("write", NO_SPACE, "StoreFull"),
    ("write", WRITE_FAILED, "StoreFailed"),
    ("sync", SYNC_FAILED, "StoreFailed"),
]


@pytest.mark.parametrize(("on", "error", "said"), FAILURES)
@pytest.mark.parametrize("seed", range(6))
def test_a_failing_disk_stops_the_owner_until_it_is_opened_anew(
    on: Operation, error: int, said: str, seed: int
) -> None:
    """It answers nothing more, says why, and the next owner finds nothing half."""
    world = World(seed)
    world.live(ACTS)
    for _ in range(LIVES):
        after = world.chance.randrange(20, 300)
        world.disk.faults = [Fault(on, error, after)]
        with pytest.raises((OwnerStopped, StoreError)) as stopped:
            world.live(1_000)
        assert said in f"{stopped.typename}: {stopped.value}"
        assert world.owner is not None
        with pytest.raises(OwnerStopped):
            world.owner.step([], world.clock.at_ms)
        world.disk.crash()
        world.account.end_life()
    world.disk.faults = []
    world.live(ACTS)
    world.account.end_life()
    world.check()
