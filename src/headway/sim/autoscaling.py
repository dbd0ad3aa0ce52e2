"""A fleet that obeys the advice: workers are ordered, take their time, and leave.

Every few seconds the fleet is told how many slots are wanted, by the same figures and
the same rule as a live owner. A slot is paid for from its order until it has left.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Final, cast

import msgspec

from headway.core.capacity import HOLD_MS, Scaler, wanted
from headway.core.commands import (
    Answer,
    Changed,
    Command,
    Decision,
    Lease,
    Withdraw,
)
from headway.core.job import Job
from headway.runtime.meter import Meter
from headway.runtime.staffing import figures
from headway.runtime.waiting import Waits
from headway.sim.policies import POLICIES
from headway.sim.result import Result
from headway.sim.scenario import Scenario, Workers
from headway.sim.world import Happening, World

KEPT: Final = 0.99
"""A promise counts as kept if this share of its lane's jobs started in time."""


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """How workers are had."""

    every_ms: int = 10_000
    """How often the advice is heard."""
    start_ms: int = 20_000
    """How long a new worker takes to be there."""
    hold_ms: int = HOLD_MS
    """How long the fleet stays as large as it was last wanted to be."""


class Scaled(msgspec.Struct, frozen=True, kw_only=True):
    """A run with a fleet that obeys the advice, and what it cost."""

    result: Result
    paid_s: float
    """Slot-seconds from order to leave, until the last job was done."""
    work_s: float
    """Slot-seconds that workers were busy: no fleet that does the work has fewer."""
    most: int
    """The largest fleet."""
    sizes: list[int]
    """Slots that were paid for, each time the advice was heard."""
    ratio: float
    """What was paid for, against the least that any fleet could do with."""
    is_kept: bool


def run(
    scenario: Scenario,
    fleet: Fleet | None = None,
    *,
    seed: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Scaled:
    """Runs a scenario with as many workers as are wanted, instead of its own.

    The fleet begins with the slots that the scenario has at its start.
    """
    began = perf_counter()
    world = _ScaledWorld(scenario, fleet or Fleet(), seed)
    world.run(progress)
    world.note()
    result = world.result(perf_counter() - began)
    load = msgspec.structs.replace(result.load, slots=world.slots_over_time(result))
    kept = [lane.attained >= KEPT for lane in result.lanes.values()]
    return Scaled(
        result=msgspec.structs.replace(result, load=load),
        paid_s=world.paid_ms / 1_000,
        work_s=world.work_ms / 1_000,
        most=world.most,
        sizes=world.sizes,
        ratio=round(world.paid_ms / max(world.work_ms, 1), 4),
        is_kept=all(kept),
    )


class _Pool:
    """Slots that serve one set of queues."""

    def __init__(self, queues: tuple[str, ...] | None, hold_ms: int) -> None:
        self.queues = queues
        self.scaler = Scaler(hold_ms)
        self.coming = 0
        self.there = 0
        self.leaving = 0
        """Of those there, the ones that leave when their job is done."""
        self.idle: dict[Lease, None] = {}

    @property
    def size(self) -> int:
        """Slots that are to stay, or to come."""
        return self.coming + self.there - self.leaving


class _ScaledWorld(World):
    """The world with workers that come and go by advice."""

    def __init__(self, scenario: Scenario, fleet: Fleet, seed: int | None) -> None:
        self.fleet = fleet
        self.meter = Meter()
        self.paid_ms = 0
        self.work_ms = 0
        self.most = 0
        self.sizes: list[int] = []
        self._first = sum(x.slots for x in scenario.workers if x.at_ms == 0)
        self._noted_ms = scenario.epoch_ms
        self._pools: dict[tuple[str, ...] | None, _Pool] = {}
        for group in scenario.workers:
            self._pools.setdefault(group.queues, _Pool(group.queues, fleet.hold_ms))
        policy = POLICIES["headway"]
        super().__init__(scenario, policy, scenario.seed if seed is None else seed)
        self._at(scenario.epoch_ms + fleet.every_ms, self._listen)

    def note(self) -> None:
        """Counts what the slots have cost since it was last counted."""
        paid = sum(pool.coming + pool.there for pool in self._pools.values())
        self.paid_ms += paid * (self.now_ms - self._noted_ms)
        self._noted_ms = self.now_ms
        self.most = max(self.most, paid)

    def slots_over_time(self, result: Result) -> list[float]:
        """What was paid for in the middle of each bin."""
        sizes = [self._first, *self.sizes]
        middles = [
            place * result.bin_ms + result.bin_ms // 2
            for place in range(len(result.load.slots))
        ]
        every_ms = self.fleet.every_ms
        return [float(sizes[min(at // every_ms, len(sizes) - 1)]) for at in middles]

    def _joins(self, group: Workers) -> Happening:
        """Only those that are there from the start come by themselves."""
        pool = self._pools[group.queues]

        def happen(commands: list[Command]) -> None:
            if group.at_ms == 0:
                self._come(pool, group.slots, commands)

        return happen

    def _listen(self, commands: list[Command]) -> None:
        """Hears how many are wanted, and orders or sends away."""
        self.note()
        book = self.partition.book
        self.meter.roll(self.now_ms)
        for pool in self._pools.values():
            waits = Waits(book, self.now_ms)
            told = figures(book, self.meter, waits, pool.queues, self.now_ms)
            there = msgspec.structs.replace(told, slots=pool.size)
            advice = wanted(there, self.fleet.start_ms)
            size = pool.scaler.follow(advice.slots, self.now_ms)
            more = size - pool.size
            if more > 0:
                stays = min(more, pool.leaving)
                pool.leaving -= stays
                self._order(pool, more - stays)
            else:
                self._send_away(pool, -more, commands)
        self.sizes.append(sum(pool.size for pool in self._pools.values()))
        if self._next is not None or self._fates:
            self._at(self.now_ms + self.fleet.every_ms, self._listen)

    def _order(self, pool: _Pool, slots: int) -> None:
        if slots:
            pool.coming += slots
            arrive_ms = self.now_ms + self.fleet.start_ms

            def happen(commands: list[Command]) -> None:
                self.note()
                pool.coming -= slots
                self._come(pool, slots, commands)

            self._at(arrive_ms, happen)

    def _come(self, pool: _Pool, slots: int, commands: list[Command]) -> None:
        pool.there += slots
        commands.extend(self._offer(pool) for _ in range(slots))

    def _offer(self, pool: _Pool) -> Lease:
        lease = self._lease(pool.queues, None)
        pool.idle[lease] = None
        return lease

    def _send_away(self, pool: _Pool, slots: int, commands: list[Command]) -> None:
        """Idle ones go at once, busy ones when they are done."""
        idle = list(pool.idle)[:slots]
        for lease in idle:
            del pool.idle[lease]
            commands.append(Withdraw(lease))
        pool.there -= len(idle)
        pool.leaving += slots - len(idle)

    def _hear(self, command: Command, answer: Answer, more: list[Command]) -> None:
        super()._hear(command, answer, more)
        if isinstance(command, Withdraw) and not cast(Changed, answer).count:
            # It got its job in the same instant: then it leaves after that.
            pool = self._pools[command.lease.queues]
            pool.there += 1
            pool.leaving += 1

    def _granted(self, lease: Lease, jobs: list[Job], commands: list[Command]) -> None:
        self._pools[lease.queues].idle.pop(lease, None)
        self.work_ms += sum(self._fates[job.seq].arrival.run_ms for job in jobs)
        super()._granted(lease, jobs, commands)

    def _frees(
        self, lease: Lease, until_ms: int | None, ending: Command | None
    ) -> Happening:
        pool = self._pools[lease.queues]

        def happen(commands: list[Command]) -> None:
            if ending is not None:
                commands.append(ending)
            if pool.leaving:
                self.note()
                pool.leaving -= 1
                pool.there -= 1
            else:
                commands.append(self._offer(pool))

        return happen

    def _watch(self, decision: Decision) -> None:
        super()._watch(decision)
        self.meter.decided(decision, self.now_ms)
