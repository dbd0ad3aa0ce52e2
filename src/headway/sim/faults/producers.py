"""Who puts work in: producers with and without idempotency keys, and repliers."""

from functools import partial
from random import Random
from typing import Any, Final

import msgspec

from headway.core.commands import Accepted, Enqueue, Reply
from headway.core.spec import JobSpec
from headway.sim.faults.checks_rules import VITAL
from headway.sim.faults.stage import Stage

TENANTS: Final = ("", "acme", "bolt", "core")
KINDS: Final = ("", "", "mail", "mail", VITAL)


class Producer:
    """Enqueues now and then, until its work is given out or the faults are over."""

    def __init__(self, stage: Stage, number: int, orders: int) -> None:
        self._stage = stage
        self._number = number
        self._orders = orders
        self._chance: Random = stage.chance(f"producer {number}")
        self._made = 0
        self._keyed: list[Enqueue] = []

    def begin(self) -> None:
        gap_ms = self._stage.rates.fault_ms // (self._orders + 1)
        for number in range(self._orders):
            at_ms = gap_ms * number + self._chance.randrange(gap_ms)
            self._stage.agenda.after(at_ms, self._order)

    def _order(self) -> None:
        """Something new, or now and then something that was said before."""
        chance = self._chance
        if self._keyed and chance.random() < 0.15:
            command = chance.choice(self._keyed)
            if chance.random() < 0.3:
                command = self._other_body(command)
        else:
            command = self._new()
        self._send(command, tries=3 if self._stage.rates.is_patient else 1)

    def _send(self, command: Enqueue, tries: int) -> None:
        self._stage.counts["enqueues"] += 1
        silent = partial(self._silent, command, tries)
        self._stage.network.ask(command, self._heard, silent)

    def _heard(self, reply: Any) -> None:
        if isinstance(reply, Accepted):
            self._stage.panel.total.accepted(reply.seqs)

    def _silent(self, command: Enqueue, tries: int) -> None:
        """Unknown: with a key it is safe to say it again, without it may double."""
        has_keys = all(spec.idempotency_key for spec in command.specs)
        if tries > 1 and (has_keys or self._chance.random() < 0.3):
            self._stage.counts["retried enqueues"] += 1
            self._send(command, tries - 1)

    def _new(self) -> Enqueue:
        chance = self._chance
        config = chance.choice(self._stage.configs)
        count = chance.choice([1, 1, 1, 1, 2, 2, 4, 12])
        is_keyed = chance.random() < 0.5
        command = Enqueue(config.name, [self._spec(is_keyed) for _ in range(count)])
        if is_keyed:
            self._keyed.append(command)
        return command

    def _spec(self, is_keyed: bool) -> JobSpec:
        chance = self._chance
        self._made += 1
        name = f"{self._number}-{self._made}"
        is_late = chance.random() < 0.2
        kind = chance.choice(KINDS)
        return JobSpec(
            payload=name.encode() * chance.choice([1, 1, 1, 60]),
            tenant=chance.choice(TENANTS),
            kind=kind,
            is_critical=kind == VITAL,
            priority=chance.choice([None, None, 50, 200]),
            weight=3.0 if chance.random() < 0.05 else None,
            delay_ms=chance.choice([1, 500, 8_000, 30_000]) if is_late else None,
            cost=2 if chance.random() < 0.1 else None,
            slo_ms=chance.choice([None, None, 1_000, 60_000]),
            lifetime_ms=chance.choice([500, 20_000])
            if chance.random() < 0.04
            else None,
            idempotency_key=name if is_keyed else None,
        )

    def _other_body(self, command: Enqueue) -> Enqueue:
        first, *rest = command.specs
        other = msgspec.structs.replace(first, payload=first.payload + b"!")
        return Enqueue(command.queue, [other, *rest])


class Replier:
    """Answers what jobs wait for: early, in time, twice, late or never."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._chance = stage.chance("replier")
        self._keys = 0

    def key(self) -> str:
        self._keys += 1
        return f"r{self._keys}"

    def is_early(self) -> bool:
        return self._chance.random() < 0.3

    def answer(self, queue: str, key: str, timeout_ms: int) -> None:
        """Draws when, and how often."""
        chance = self._chance
        if chance.random() < 0.15 and not self._stage.is_healed:
            return
        times = 2 if chance.random() < 0.25 else 1
        for _ in range(times):
            is_late = chance.random() < 0.15
            delay_ms = chance.randrange(timeout_ms * 2 if is_late else timeout_ms // 2)
            self._stage.agenda.after(delay_ms, partial(self.send, queue, key))

    def send(self, queue: str, key: str, tries: int = 2) -> None:
        self._stage.counts["replies"] += 1
        command = Reply(queue, key, key.encode())
        silent = partial(self._silent, queue, key, tries)
        self._stage.network.ask(command, _ignore, silent)

    def _silent(self, queue: str, key: str, tries: int) -> None:
        if tries > 1:
            self.send(queue, key, tries - 1)


def _ignore(reply: Any) -> None:
    """What became of a reply is history's to tell."""
