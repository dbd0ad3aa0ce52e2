"""The time of a partition: the store's at take-over, and what has passed since.

A wall clock that is set does not move it; a machine that slept does.
"""

import time


class Clock:
    """Milliseconds since 1970 as its partition counts them."""

    def __init__(self, last_ms: int = 0) -> None:
        """`last_ms` is the newest time in the store: time never goes back."""
        self._start_ms = max(time.time_ns() // 1_000_000, last_ms)
        self._boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def now_ms(self) -> int:
        passed_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - self._boot_ns
        return self._start_ms + passed_ns // 1_000_000
