"""The owner at work in the simulated world: steps, deaths, take-overs and late wakers."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import apsw
import msgspec

from headway.core.commands import Configure, Enqueue, Lease, Withdraw
from headway.runtime.errors import OwnerStopped
from headway.runtime.owner import Ask, Owner
from headway.runtime.views import Count
from headway.sim.faults.clock import StoreClock
from headway.sim.faults.media import Medium
from headway.sim.faults.network import Call
from headway.sim.faults.stage import Stage
from headway.sim.faults.verdict import expect
from headway.store.errors import Corrupt, Fenced, NotOpen, StoreFailed, StoreLocked
from headway.store.port import Store

ASKS_MAX: Final = 50


class Life:
    """One owner, from its take-over to its end."""

    def __init__(self, owner: Owner, store: Store, clock: StoreClock) -> None:
        self.owner = owner
        self.store = store
        self.clock = clock
        self.arrived: list[Call | Withdraw] = []
        self.waiting: dict[Ask, Call] = {}
        self.is_busy = False
        self.wake = 0
        """Which wake-up counts; earlier ones are void."""


class Node:
    """The place where the owner runs; clients reach whoever runs there now."""

    def __init__(self, stage: Stage, medium: Medium) -> None:
        self.life: Life | None = None
        self.medium = medium
        self.is_mute = False
        """The next commit is the last: its answers do not leave."""
        self.is_cut = False
        """The next death is a power cut."""
        self.slow_until_ms = 0
        self._stage = stage
        self._chance = stage.chance("node")
        stage.network.arrive = self._arrive
        stage.network.hang_up = self._hang_up

    def start(self) -> None:
        """Takes the store over, or tries again later."""
        stage = self._stage
        if self.life is not None:
            return
        store = self.medium.open()
        owner = Owner(store, stage.rates.bounds)
        clock = StoreClock(stage.agenda, stage.wall_ms, store)
        try:
            owner.take_over(clock)
            life = Life(owner, store, clock)
            stage.panel.taken_over(owner, store)
        except (StoreFailed, StoreLocked) as error:
            if not is_fault(error):
                raise
            stage.note("take-over failed", type(error).__name__)
            stage.counts["failed take-overs"] += 1
            self._gone()
            return
        stage.counts["take-overs"] += 1
        stage.note("take-over, epoch", owner.epoch)
        self.life = life
        # The first one is before any fault, and makes the queues.
        is_first = owner.epoch == 1
        configs = stage.configs
        self._decide(
            life, [Configure(c) if is_first else Count(c.name) for c in configs]
        )

    def crash(self, *, is_power_cut: bool) -> None:
        if self.life is not None:
            self._stage.note("power cut" if is_power_cut else "crash")
            self.is_cut = is_power_cut
            self._die()

    def close(self) -> None:
        """A clean end, and a new owner at once."""
        if self.life is not None:
            life, self.life = self.life, None
            with suppress(apsw.Error):  # of the disk, while the log is cleared away
                life.owner.close()
            self._stage.note("closed")
            self.medium.die(is_power_cut=False)
            self.start()

    def pause(self, wakes_in_ms: int) -> None:
        """This owner sleeps while another takes over, and wakes late."""
        life = self.life
        if life is None:
            return
        self._stage.note("paused")
        self.life = None
        self.medium.replaced()
        self._stage.agenda.after(wakes_in_ms, partial(self._wake_late, life))
        self.start()

    def _arrive(self, call: Call) -> None:
        life = self.life
        if life is None:
            return
        if isinstance(call.ask, Enqueue):
            self._stage.panel.total.arrived(call.ask.specs)
        life.arrived.append(call)
        self._soon(life)

    def _hang_up(self, call: Call) -> None:
        """The caller of a lease is gone: whoever serves it is told."""
        if self.life is None:
            return
        for ask, waiting in self.life.waiting.items():
            if waiting is call and isinstance(ask, Lease):
                self.life.arrived.append(Withdraw(ask))
                self._soon(self.life)

    def _soon(self, life: Life) -> None:
        if not life.is_busy:
            life.is_busy = True
            self._stage.agenda.after(0, partial(self._step, life))

    def _step(self, life: Life) -> None:
        """What has arrived is decided together."""
        if life is not self.life:
            return
        taken, life.arrived = life.arrived[:ASKS_MAX], life.arrived[ASKS_MAX:]
        self._decide(life, _asks(life, taken))

    def _decide(self, life: Life, asks: Sequence[Ask]) -> None:
        stage = self._stage
        stage.panel.begin(asks)
        try:
            answers = life.owner.step(asks, life.clock.now_ms())
            stage.panel.committed(life.store)
        except OwnerStopped as stopped:
            if not is_fault(stopped.__cause__):
                raise
            stage.note("stopped", type(stopped.__cause__).__name__)
            self._die()
            return
        except StoreFailed:
            stage.note("the store failed after a commit")
            self._die()
            return
        stage.counts["steps"] += 1
        stage.panel.answered(answers, life.clock.now_ms())
        stage.panel.counted(answers)
        life.is_busy = True
        stage.agenda.after(self._commit_ms(), partial(self._leave, life, answers))

    def _leave(self, life: Life, answers: list[tuple[Ask, Any]]) -> None:
        """The flush is over: the answers go, if their owner still lives."""
        if life is not self.life:
            return
        if self.is_mute and answers:
            self.is_mute = False
            self._stage.counts["answers lost after commit"] += 1
            self.crash(is_power_cut=self._chance.random() < 0.5)
            return
        for ask, reply in answers:
            call = life.waiting.pop(ask, None)
            if call is not None:
                self._stage.network.carry(partial(call.answered, reply))
        life.is_busy = False
        if life.arrived:
            self._soon(life)
        else:
            self._sleep(life)

    def _sleep(self, life: Life) -> None:
        next_ms = life.owner.next_ms()
        life.wake += 1
        if next_ms is not None:
            delay_ms = max(0, next_ms - life.clock.now_ms())
            self._stage.agenda.after(delay_ms, partial(self._wake, life, life.wake))

    def _wake(self, life: Life, wake: int) -> None:
        if life is self.life and wake == life.wake and not life.is_busy:
            self._decide(life, [])

    def _wake_late(self, life: Life) -> None:
        """P4, 11: it goes on as if nothing had been, and must not be able to write."""
        stage = self._stage
        stage.counts["late wakers"] += 1
        current = self.life
        try:
            answers = life.owner.step(_asks(life, life.arrived), life.clock.now_ms())
        except OwnerStopped as stopped:
            is_refused = isinstance(stopped.__cause__, Fenced | StoreFailed | NotOpen)
            expect(is_refused, "P4: not refused", stopped.__cause__)
            stage.counts[f"late wakers: {type(stopped.__cause__).__name__}"] += 1
        else:
            for ask, reply in answers:
                call = life.waiting.pop(ask, None)
                if call is not None:
                    stage.network.carry(partial(call.answered, reply))
            life.owner.close()
        if current is not None:
            stage.panel.unwritten(current.store)

    def _commit_ms(self) -> int:
        stage = self._stage
        if stage.agenda.now_ms < self.slow_until_ms:
            return self._chance.randrange(500, 5_000)
        return 1 + self._chance.randrange(stage.rates.commit_ms)

    def _die(self) -> None:
        self.life = None
        self._gone()

    def _gone(self) -> None:
        """Nobody serves; after a while somebody does."""
        self.medium.die(is_power_cut=self.is_cut)
        self.is_cut = False
        most_ms = 100 if self._stage.is_healed else 3_000
        self._stage.agenda.after(1 + self._chance.randrange(most_ms), self.start)


def is_fault(error: BaseException | None) -> bool:
    """Whether a store may raise this when its disk fails or its process stops."""
    is_of_store = isinstance(error, StoreFailed | StoreLocked)
    return is_of_store and not isinstance(error, Corrupt)


def _asks(life: Life, taken: Sequence[Call | Withdraw]) -> list[Ask]:
    """Every message that arrives is a command of its own, doubled ones too."""
    asks: list[Ask] = []
    for call in taken:
        if isinstance(call, Withdraw):
            asks.append(call)
        else:
            ask = msgspec.structs.replace(call.ask)
            life.waiting[ask] = call
            asks.append(ask)
    return asks
