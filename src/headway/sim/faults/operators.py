"""Who rules: an operator that pauses, limits, cancels, redrives, purges and schedules."""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from headway.core.commands import (
    Cancel,
    Configure,
    DropSchedule,
    Hold,
    Purge,
    PutSchedule,
    Redrive,
    SetHold,
    SetKind,
    SetTenant,
)
from headway.core.config import Concurrency, Order, QueueConfig
from headway.core.cron import Missed, Schedule
from headway.core.spec import JobSpec
from headway.core.states import JobState
from headway.runtime.owner import Ask
from headway.sim.faults.producers import KINDS, TENANTS
from headway.sim.faults.stage import Stage

NAMES = ("one", "two")
TICK = b"tick"


class Operator:
    """Says something now and then; at the end it lifts all that it has said."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._chance = stage.chance("operator")
        stage.panel.total.ticks(TICK)
        self._acts: list[Callable[[QueueConfig], Ask]] = [
            self._hold,
            self._hold,
            self._limit,
            self._limit,
            self._tenant,
            self._cap,
            self._kind,
            self._schedule,
            self._schedule,
            self._drop,
            self._cancel,
            self._cancel,
            self._redrive,
            self._redrive,
            self._purge,
        ]

    def begin(self) -> None:
        gap_ms = self._stage.rates.operator_gap_ms
        if gap_ms:
            for at_ms in range(gap_ms, self._stage.rates.fault_ms, gap_ms):
                self._stage.agenda.after(at_ms, self._act)

    def lift(self) -> None:
        """Limits stay; whatever stops work for good goes."""
        for config in self._stage.configs:
            for hold in Hold:
                self._say(SetHold(config.name, hold, is_on=False))
            for tenant in TENANTS:
                self._say(SetTenant(config.name, tenant, is_paused=False))
            for kind in dict.fromkeys(KINDS):
                self._say(SetKind(config.name, kind, is_paused=False))
            for name in NAMES:
                self._say(DropSchedule(config.name, name))

    def _act(self) -> None:
        if not self._stage.is_healed:
            config = self._chance.choice(self._stage.configs)
            self._say(self._chance.choice(self._acts)(config))

    def _say(self, command: Ask) -> None:
        """Said again if nobody answers, but for what was meant for another time."""
        self._stage.counts["rulings"] += 1
        again = partial(self._again, command, is_healed=self._stage.is_healed)
        self._stage.network.ask(command, _ignore, again)

    def _again(self, command: Ask, *, is_healed: bool) -> None:
        if self._stage.is_healed == is_healed:
            self._say(command)

    def _hold(self, config: QueueConfig) -> Ask:
        hold = self._chance.choice(list(Hold))
        return SetHold(config.name, hold, is_on=self._chance.random() < 0.4)

    def _limit(self, config: QueueConfig) -> Ask:
        """Other numbers, and now and then no limit at all for a while."""
        limits = tuple(
            msgspec.structs.replace(limit, max=self._chance.randint(2, 6))
            if isinstance(limit, Concurrency)
            else limit
            for limit in config.limits
        )
        if self._chance.random() < 0.2:
            limits = tuple(x for x in limits if not isinstance(x, Concurrency))
        order = config.order
        if self._chance.random() < 0.2:
            order = self._chance.choice([Order.FAIR, Order.TIME, Order.PRIORITY])
        changed = msgspec.structs.replace(config, limits=limits, order=order)
        return Configure(changed)

    def _tenant(self, config: QueueConfig) -> Ask:
        is_paused = self._chance.random() < 0.5
        return SetTenant(config.name, self._chance.choice(TENANTS), is_paused=is_paused)

    def _cap(self, config: QueueConfig) -> Ask:
        cap = self._chance.choice([-1, 2, 3])
        return SetTenant(config.name, self._chance.choice(TENANTS), cap=cap)

    def _kind(self, config: QueueConfig) -> Ask:
        is_paused = self._chance.random() < 0.5
        return SetKind(config.name, self._chance.choice(KINDS), is_paused=is_paused)

    def _schedule(self, config: QueueConfig) -> Ask:
        chance = self._chance
        missed = chance.choice(list(Missed))
        cron = "* * * * *" if missed is Missed.ALL else "*/10 * * * * *"
        entry = Schedule(
            queue=config.name,
            name=chance.choice(NAMES),
            cron=cron,
            missed=missed,
            spec=JobSpec(payload=TICK),
        )
        return PutSchedule(entry)

    def _drop(self, config: QueueConfig) -> Ask:
        return DropSchedule(config.name, self._chance.choice(NAMES))

    def _cancel(self, config: QueueConfig) -> Ask:
        return Cancel(self._chance.randint(1, self._stage.panel.account.last_seq + 1))

    def _redrive(self, config: QueueConfig) -> Ask:
        records = self._stage.panel.account.records.values()
        dead = [record.seq for record in records if record.state is JobState.DEAD]
        return Redrive(self._chance.choice(dead) if dead else 1)

    def _purge(self, config: QueueConfig) -> Ask:
        is_one = self._chance.random() < 0.8
        return Purge(config.name, self._chance.choice(TENANTS) if is_one else None)


def _ignore(reply: Any) -> None:
    """The checkers judge what came of it."""
