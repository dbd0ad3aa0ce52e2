"""Messages between clients and the owner: late, lost, doubled and out of order."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from headway.core.commands import Lease
from headway.runtime.owner import Ask
from headway.sim.faults.agenda import Act, Agenda
from headway.sim.faults.rates import Rates

Hear = Callable[[Any], None]


class Call:
    """What a client asked, and who waits for the answer."""

    __slots__ = ("ask", "hear", "is_heard")

    def __init__(self, ask: Ask, hear: Hear) -> None:
        self.ask = ask
        self.hear = hear
        self.is_heard = False

    def answered(self, reply: Any) -> None:
        """An answer has come through; the first one counts."""
        if not self.is_heard:
            self.is_heard = True
            self.hear(reply)


class Network:
    """Every message draws its own fate."""

    def __init__(self, agenda: Agenda, chance: Random, rates: Rates) -> None:
        self.is_healed = False
        self.cut_until_ms = 0
        self.sent = 0
        self.lost = 0
        self.doubled = 0
        self.arrive: Callable[[Call], None] = _nowhere
        self.hang_up: Callable[[Call], None] = _nowhere
        self._agenda = agenda
        self._chance = chance
        self._rates = rates

    def ask(
        self, ask: Ask, hear: Hear, silent: Act | None = None, patience_ms: int = 2_000
    ) -> Call:
        """`silent` is called if no answer has come within the time."""
        call = Call(ask, hear)
        self.carry(partial(self.arrive, call))
        self._agenda.after(patience_ms, partial(self._give_up, call, silent))
        return call

    def carry(self, deliver: Act) -> None:
        """Brings a message, or does not, or does so twice."""
        self.sent += 1
        agenda = self._agenda
        if self.is_healed:
            agenda.after(1 + self._chance.randrange(4), deliver)
            return
        rates, draw = self._rates, self._chance.random
        if agenda.now_ms < self.cut_until_ms or draw() < rates.lost:
            self.lost += 1
            return
        agenda.after(int(draw() * draw() * rates.delay_ms), deliver)
        if draw() < rates.doubled:
            self.doubled += 1
            agenda.after(int(draw() * 2 * rates.delay_ms), deliver)

    def _give_up(self, call: Call, silent: Act | None) -> None:
        if call.is_heard:
            return
        if isinstance(call.ask, Lease):
            self.carry(partial(self.hang_up, call))
        if silent is not None:
            silent()


def _nowhere(call: Call) -> None:
    raise AssertionError("there is nobody to call")
