"""Virtual time: what will happen when. Nothing here waits."""

from collections.abc import Callable
from heapq import heappop, heappush

from headway.sim.faults.verdict import Stalled

Act = Callable[[], None]


class Agenda:
    """Acts by time; those of one moment in the order in which they were entered."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        """True time, which no clock in the simulation is sure of."""
        self.acts = 0
        self._heap: list[tuple[int, int, Act]] = []
        self._serial = 0

    def at(self, at_ms: int, act: Act) -> None:
        self._serial += 1
        heappush(self._heap, (max(at_ms, self.now_ms), self._serial, act))

    def after(self, delay_ms: int, act: Act) -> None:
        self.at(self.now_ms + delay_ms, act)

    def run_until(
        self, end_ms: int, most_acts: int, is_over: Callable[[], bool] | None = None
    ) -> None:
        """Until that time or until it is over; too many acts mean that time stands."""
        heap = self._heap
        while heap and heap[0][0] <= end_ms:
            if is_over is not None and is_over():
                return
            self.now_ms, _, act = heappop(heap)
            act()
            self.acts += 1
            if self.acts > most_acts:
                raise Stalled(f"invariant 29: more than {most_acts} acts")
        self.now_ms = max(self.now_ms, end_ms)
