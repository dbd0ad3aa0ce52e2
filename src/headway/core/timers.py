"""Time buckets: many timers, most of which are taken back before they fire.

Far timers lie in coarse buckets, unordered; only the bucket that time has reached is
put in order. Nothing here reads a clock.
"""

from heapq import heapify, heappop, heappush
from typing import Any, Final, Generic, TypeVar

from headway.core.errors import BadValue

WIDTH_MS: Final = 512
STALE_SLACK: Final = 64
"""Dead heap entries, or empty places of a bucket, that are not worth a clean-up."""
SPARSE: Final = 16
"""A bucket with one key in so many places keeps those that are left in a dictionary."""

KNOWN: Final = 64
"""So many far buckets are found by their number alone; a power of two."""

K = TypeVar("K")


class Bucket(Generic[K]):
    """Keys by place, in the order in which they came: a key is told its place.

    Whoever takes a key back says where it is, so that nothing has to be looked for: of
    a million timers, what is looked for is in no cache.
    """

    __slots__ = ("begin", "count", "few", "keys", "number", "times")

    def __init__(self, number: int) -> None:
        self.number = number
        """When it is due, as far as that is the same for all of them."""
        self.keys: list[K | None] = []
        self.times: list[Any] = []
        self.begin = 0
        """The place of the first of them..."""
        self.count = 0
        """...and how many keys are left."""
        self.few: dict[int, tuple[K, Any]] | None = None
        """They and their times, once they are few and far between."""

    def put(self, key: K, at_ms: Any) -> int:
        self.count += 1
        if self.few is None:
            keys = self.keys
            keys.append(key)
            self.times.append(at_ms)
            return self.begin + len(keys) - 1
        place = self.begin
        self.begin = place + 1
        self.few[place] = key, at_ms
        return place

    def drop(self, key: K, place: int) -> bool:
        """Takes out that very object; whether it was there."""
        keys = self.keys
        if self.few is not None:
            found = self.few.pop(place, None)
            if found is None or found[0] is not key:
                if found is not None:
                    self.few[place] = found
                return False
            self.count -= 1
            return True
        index = place - self.begin
        if not 0 <= index < len(keys) or keys[index] is not key:
            return False
        keys[index] = None
        self.count -= 1
        if SPARSE * self.count + STALE_SLACK < len(keys):
            self._thin_out()
        return True

    def key(self, place: int) -> K | None:
        if self.few is None:
            index = place - self.begin
            return self.keys[index] if index >= 0 else None
        return self.few[place][0] if place in self.few else None

    def time(self, place: int) -> int:
        """When the key of a place is due."""
        at_ms: int
        if self.few is None:
            at_ms = self.times[place - self.begin]
        else:
            at_ms = self.few[place][1]
        return at_ms

    def in_order(self) -> list[int]:
        """Places that have a key, by time and then in the order in which they came."""
        if self.few is not None:
            few = self.few
            return sorted(few, key=lambda place: few[place][1])
        keys, begin = self.keys, self.begin
        # Sorting is stable.
        ordered = sorted(range(len(keys)), key=self.times.__getitem__)
        return [begin + index for index in ordered if keys[index] is not None]

    def all_keys(self) -> list[K]:
        """The keys in that order."""
        if self.few is not None:
            few = self.few
            return [few[place][0] for place in self.in_order()]
        keys, begin = self.keys, self.begin
        places = self.in_order()
        return [key for place in places if (key := keys[place - begin]) is not None]

    def _thin_out(self) -> None:
        """Mostly who came first has gone first: all before the first that is left."""
        keys, times = self.keys, self.times
        gone = 0
        for key in keys:
            if key is not None:
                break
            gone += 1
        if 2 * gone >= len(keys):
            self.begin += gone
            del keys[:gone]
            del times[:gone]
            return
        few: dict[int, tuple[K, Any]] = {}
        for index, key in enumerate(keys):
            if key is not None:
                few[self.begin + index] = key, times[index]
        self.few = few
        self.begin += len(keys)
        self.keys = []
        self.times = []


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
        "_known",
        "_near",
        "_numbers",
        "_shift",
    )

    def __init__(self, width_ms: int = WIDTH_MS) -> None:
        if width_ms < 1 or width_ms & (width_ms - 1):
            raise BadValue("width_ms", width_ms, "must be a power of two")
        self._shift = width_ms.bit_length() - 1
        self._far: dict[int, Bucket[K]] = {}
        # The last time added, as a number and as an object: what comes together ends
        # together, and compiled code would make an object for each.
        self._at_ms = -1
        self._boxed_ms: Any = -1
        # Those of them that were last asked for, each where its number belongs: a
        # dictionary has an object made of the number, and looks for that.
        self._known: list[Bucket[K] | None] = [None] * KNOWN
        # The far buckets' numbers, and those of buckets that were emptied since.
        self._numbers: list[int] = []
        # Every key whose bucket is below the edge is near, and no other.
        self._edge = 0
        # Near keys, and their times and places in order; some are there no more.
        self._near: Bucket[K] = Bucket(0)
        self._heap: list[tuple[int, int]] = []

    def __len__(self) -> int:
        """Counts bucket by bucket, to spare `add` and `remove` a counter."""
        return self._near.count + sum(bucket.count for bucket in self._far.values())

    def add(self, key: K, at_ms: int) -> int:
        """Puts a key in, to be popped once `at_ms` is reached; answers its place."""
        if at_ms != self._at_ms:
            self._at_ms = at_ms
            self._boxed_ms = at_ms
        number = at_ms >> self._shift
        if number < self._edge:
            place = self._near.put(key, self._boxed_ms)
            heappush(self._heap, (at_ms, place))
            return place
        bucket = self._known[number & (KNOWN - 1)]
        if bucket is None or bucket.number != number:
            bucket = self._find(number)
            if bucket is None:
                bucket = self._far[number] = Bucket(number)
                self._known[number & (KNOWN - 1)] = bucket
                heappush(self._numbers, number)
        return bucket.put(key, self._boxed_ms)

    def remove(self, key: K, at_ms: int, place: int) -> bool:
        """Takes a key back, given the time it was added with and the place that it got;
        False if it is gone.
        """
        number = at_ms >> self._shift
        if number < self._edge:
            near = self._near
            if not near.drop(key, place):
                return False
            if len(self._heap) > 3 * near.count + STALE_SLACK:
                self._drop_dead_entries()
            return True
        bucket = self._known[number & (KNOWN - 1)]
        if bucket is None or bucket.number != number:
            bucket = self._find(number)
            if bucket is None:
                return False
        if not bucket.drop(key, place):
            return False
        if not bucket.count:
            del self._far[number]
            self._known[number & (KNOWN - 1)] = None
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
            _, place = heappop(heap)
            key = near.key(place)
            if key is not None:
                near.drop(key, place)
                due.append(key)
        return due

    def next_ms(self) -> int | None:
        """When to pop next: never after the earliest key, None if there is none.

        It may be earlier, at the start of that key's bucket: popping then fires
        nothing, but makes the next answer exact.
        """
        heap, near = self._heap, self._near
        while heap:
            at_ms, place = heap[0]
            if near.key(place) is not None:
                return at_ms
            heappop(heap)
        numbers = self._numbers
        while numbers:
            if numbers[0] in self._far:
                return numbers[0] << self._shift
            heappop(numbers)
        return None

    def _find(self, number: int) -> Bucket[K] | None:
        """The far bucket of that number, if there is one."""
        bucket = self._far.get(number)
        if bucket is not None:
            self._known[number & (KNOWN - 1)] = bucket
        return bucket

    def _take(self, number: int) -> Bucket[K] | None:
        self._known[number & (KNOWN - 1)] = None
        return self._far.pop(number, None)

    def _pop_due_at_edge(self, now_ms: int) -> list[K]:
        """Moves the edge past `now_ms`: all that was near is due, and first in order."""
        last = now_ms >> self._shift
        numbers = self._numbers
        due = self._near.all_keys()
        self._near = Bucket(0)
        self._heap.clear()
        self._edge = last + 1
        while numbers and numbers[0] < last:
            bucket = self._take(heappop(numbers))
            if bucket is not None:
                due += bucket.all_keys()
        bucket = self._take(last)
        if bucket is not None:
            self._split(bucket, now_ms, due)
        return due

    def _split(self, bucket: Bucket[K], now_ms: int, due: list[K]) -> None:
        """Adds what is due of a bucket to `due`; the rest is near, where it is."""
        self._near = bucket
        for place in bucket.in_order():
            at_ms = bucket.time(place)
            if at_ms <= now_ms:
                key = bucket.key(place)
                assert key is not None
                due.append(key)
                bucket.drop(key, place)
            else:
                # The heap was empty, and a sorted list is a heap.
                self._heap.append((at_ms, place))

    def _drop_dead_entries(self) -> None:
        near = self._near
        self._heap = [entry for entry in self._heap if near.key(entry[1]) is not None]
        heapify(self._heap)
