"""Time buckets: many timers, most of which are taken back before they fire.

Far timers lie in coarse buckets, unordered; only the bucket that time has reached is
put in order. Nothing here reads a clock.
"""

from heapq import heapify, heappop, heappush
from typing import Any, Final, Generic, TypeVar

from headway.core.errors import BadValue

WIDTH_MS: Final = 512
STALE_SLACK: Final = 64
"""Dead heap entries that are not worth a clean-up."""

K = TypeVar("K")


class TimeBuckets(Generic[K]):
    """Keys with a time each, given back in order of time and then of insertion.

    A key is in here at most once: adding it again without removing it first is the
    caller's bug. A time in the past is as good as any and fires at the next pop.
    """

    __slots__ = (
        "_at_ms",
        "_boxed_ms",
        "_edge",
        "_far",
        "_heap",
        "_near",
        "_numbers",
        "_serial",
        "_shift",
    )

    def __init__(self, width_ms: int = WIDTH_MS) -> None:
        if width_ms < 1 or width_ms & (width_ms - 1):
            raise BadValue("width_ms", width_ms, "must be a power of two")
        self._shift = width_ms.bit_length() - 1
        self._far: dict[int, dict[K, Any]] = {}
        # The last time added, as a number and as an object: what comes together ends
        # together, and compiled code would make an object for each.
        self._at_ms = -1
        self._boxed_ms: Any = -1
        # The far buckets' numbers, and those of buckets that were emptied since.
        self._numbers: list[int] = []
        # Every key whose bucket is below the edge is near, and no other.
        self._edge = 0
        # The serial number of the heap entry that counts; older ones are dead.
        self._near: dict[K, int] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._serial = 0

    def __len__(self) -> int:
        """Counts bucket by bucket, to spare `add` and `remove` a counter."""
        return len(self._near) + sum(map(len, self._far.values()))

    def add(self, key: K, at_ms: int) -> None:
        """Puts a key in, to be popped once `at_ms` is reached."""
        number = at_ms >> self._shift
        if number < self._edge:
            self._serial = serial = self._serial + 1
            self._near[key] = serial
            heappush(self._heap, (at_ms, serial, key))
            return
        if at_ms != self._at_ms:
            self._at_ms = at_ms
            self._boxed_ms = at_ms
        bucket = self._far.get(number)
        if bucket is None:
            self._far[number] = {key: self._boxed_ms}
            heappush(self._numbers, number)
        else:
            bucket[key] = self._boxed_ms

    def remove(self, key: K, at_ms: int) -> bool:
        """Takes a key back, given the time it was added with; False if it is gone."""
        number = at_ms >> self._shift
        if number < self._edge:
            if self._near.pop(key, None) is None:
                return False
            if len(self._heap) > 3 * len(self._near) + STALE_SLACK:
                self._drop_dead_entries()
            return True
        bucket = self._far.get(number)
        if bucket is None or bucket.pop(key, None) is None:
            return False
        if not bucket:
            # An empty dict keeps the memory of its best days.
            del self._far[number]
            if len(self._numbers) > 3 * len(self._far) + STALE_SLACK:
                self._numbers = sorted(self._far)
        return True

    def pop_due(self, now_ms: int) -> list[K]:
        """Takes out every key whose time is `now_ms` or earlier, in order."""
        if now_ms >> self._shift >= self._edge:
            return self._pop_due_at_edge(now_ms)
        heap, near = self._heap, self._near
        due: list[K] = []
        while heap and heap[0][0] <= now_ms:
            _, serial, key = heappop(heap)
            if near.get(key) == serial:
                del near[key]
                due.append(key)
        return due

    def next_ms(self) -> int | None:
        """When to pop next: never after the earliest key, None if there is none.

        It may be earlier, at the start of that key's bucket: popping then fires
        nothing, but makes the next answer exact.
        """
        heap, near = self._heap, self._near
        while heap:
            at_ms, serial, key = heap[0]
            if near.get(key) == serial:
                return at_ms
            heappop(heap)
        numbers = self._numbers
        while numbers:
            if numbers[0] in self._far:
                return numbers[0] << self._shift
            heappop(numbers)
        return None

    def _pop_due_at_edge(self, now_ms: int) -> list[K]:
        """Moves the edge past `now_ms`: all that was near is due, and first in order."""
        last = now_ms >> self._shift
        near, far, numbers = self._near, self._far, self._numbers
        entries = sorted(self._heap)
        due = [key for _, serial, key in entries if near.get(key) == serial]
        self._heap.clear()
        near.clear()
        self._edge = last + 1
        while numbers and numbers[0] < last:
            # Sorting is stable, so equal times stay in order of insertion.
            bucket = far.pop(heappop(numbers), None)
            if bucket is not None:
                due += sorted(bucket, key=bucket.__getitem__)
        bucket = far.pop(last, None)
        if bucket is not None:
            self._split(bucket, now_ms, due)
        return due

    def _split(self, bucket: dict[K, Any], now_ms: int, due: list[K]) -> None:
        """Adds what is due of a bucket to `due`, and makes the rest near."""
        serial = self._serial
        for key in sorted(bucket, key=bucket.__getitem__):
            at_ms: int = bucket[key]
            if at_ms <= now_ms:
                due.append(key)
            else:
                serial += 1
                self._near[key] = serial
                # The heap was empty, and a sorted list is a heap.
                self._heap.append((at_ms, serial, key))
        self._serial = serial

    def _drop_dead_entries(self) -> None:
        near = self._near
        self._heap = [entry for entry in self._heap if near.get(entry[2]) == entry[1]]
        heapify(self._heap)
