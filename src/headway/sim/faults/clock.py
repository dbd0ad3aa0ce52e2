"""The partition's clock in the simulated world, by the rule of the real one."""

from collections.abc import Callable

from headway.runtime.clock import Clock
from headway.sim.faults.agenda import Agenda
from headway.store.port import Store


class StoreClock(Clock):
    """The wall clock or the store's newest time, whichever is later, at first; from
    then on what has truly passed, however the wall clock is set.
    """

    def __init__(
        self, agenda: Agenda, wall_ms: Callable[[], int], store: Store
    ) -> None:
        self._agenda = agenda
        self._wall_ms = wall_ms
        self._store = store
        self._ahead_ms: int | None = None

    def now_ms(self) -> int:
        if self._ahead_ms is None:
            last = self._store.last_segment()
            start_ms = max(
                self._wall_ms(), self.least_ms(0 if last is None else last.at_ms)
            )
            self._ahead_ms = start_ms - self._agenda.now_ms
        return self._agenda.now_ms + self._ahead_ms

    def least_ms(self, last_ms: int) -> int:
        """Time never goes back behind what was written."""
        return last_ms
