"""What everyone in a simulated world shares: time, chance, the network, the checkers."""

from collections import Counter, deque
from random import Random
from typing import Final

from headway.core.config import QueueConfig
from headway.sim.faults.agenda import Agenda
from headway.sim.faults.network import Network
from headway.sim.faults.panel import Panel
from headway.sim.faults.rates import Rates

START_MS: Final = 1_700_000_000_000
TRACE_KEPT: Final = 40


class Stage:
    """Everything that happens is drawn from the seed alone."""

    def __init__(
        self, seed: int, rates: Rates, configs: tuple[QueueConfig, ...]
    ) -> None:
        self.seed = seed
        self.rates = rates
        self.configs = configs
        self.agenda = Agenda(START_MS)
        self.network = Network(self.agenda, self.chance("network"), rates)
        self.panel = Panel(configs, is_calm=rates.is_calm)
        self.counts: Counter[str] = Counter()
        self.is_healed = False
        """Faults are over: everybody does as they should, and work ends."""
        self.wall_offset_ms = 0
        """By how much the wall clock is wrong."""
        self._trace: deque[tuple[object, ...]] = deque(maxlen=TRACE_KEPT)

    def chance(self, of: str) -> Random:
        """A source of its own for each use, so that one does not move another."""
        return Random(f"{self.seed} {of}")

    def wall_ms(self) -> int:
        return self.agenda.now_ms + self.wall_offset_ms

    def note(self, *what: object) -> None:
        """Something worth telling if this run fails."""
        self._trace.append((self.agenda.now_ms - START_MS, *what))
        self.panel.digest.update(repr(what).encode())

    def trace(self) -> list[str]:
        return [
            f"{at_ms:>8} ms  " + " ".join(map(str, what))
            for at_ms, *what in self._trace
        ]
