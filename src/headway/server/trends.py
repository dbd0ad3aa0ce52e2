"""What has become of lanes of late: rings of counters, one for each lane in use."""

from array import array
from collections import deque
from itertools import pairwise
from typing import Final

from headway.runtime.measures import LaneMeasures, Measures

SHORT: Final = (10_000, 180)
"""Steps of ten seconds, for half an hour..."""
LONG: Final = (300_000, 288)
"""...and of five minutes, for a day."""
LANES_MAX: Final = 300
"""Lanes with trends of their own: those that were in use last."""
RECENT_MS: Final = 300_000
"""Starts of so long ago still count for what is attained."""
CALM_MS: Final = 30_000
"""A promise is kept again when for so long nothing was late."""
RATE_MS: Final = 5_000
"""Starts a second are of about so long."""

Key = tuple[str, int]
Point = tuple[int, int, int, int, int]


class Ring:
    """Steps of equal length, the oldest of which make room for new ones."""

    FIELDS: Final = 5

    def __init__(self, step_ms: int, steps: int) -> None:
        self.step_ms = step_ms
        self._steps = steps
        self._values: array[int] = array("q")

    def add(self, at_ms: int, sums: tuple[int, int], tops: tuple[int, int]) -> None:
        """Counts within a step add up; of the others the greatest is kept."""
        values = self._values
        begin = at_ms - at_ms % self.step_ms
        if not values or values[-self.FIELDS] != begin:
            values.extend((begin, *sums, *tops))
            self._trim(begin)
            return
        values[-4] += sums[0]
        values[-3] += sums[1]
        values[-2] = max(values[-2], tops[0])
        values[-1] = max(values[-1], tops[1])

    def _trim(self, newest_ms: int) -> None:
        """Only steps that are as near as the ring is long: there may be gaps."""
        values = self._values
        oldest_ms = newest_ms - (self._steps - 1) * self.step_ms
        old = len(values) // self.FIELDS - self._steps
        while values and (old > 0 or values[0] < oldest_ms):
            del values[: self.FIELDS]
            old -= 1

    def dump(self) -> bytes:
        return self._values.tobytes()

    def load(self, content: bytes, at_ms: int) -> None:
        """What `dump` gave, as far as it still counts at this time."""
        values = array("q")
        values.frombytes(content)
        begins = values[:: self.FIELDS]
        if len(values) % self.FIELDS or any(
            begin <= before for before, begin in pairwise(begins)
        ):
            raise ValueError("it has steps that are none")
        is_past = [begin <= at_ms for begin in begins]
        self._values = values[: sum(is_past) * self.FIELDS]
        self._trim(at_ms - at_ms % self.step_ms)

    def points(self) -> list[Point]:
        values = self._values
        return [
            (values[i], values[i + 1], values[i + 2], values[i + 3], values[i + 4])
            for i in range(0, len(values), self.FIELDS)
        ]

    def since(self, at_ms: int) -> tuple[int, int]:
        """The two sums of all steps that begin at this time or later."""
        values = self._values
        first = second = 0
        for i in range(len(values) - self.FIELDS, -1, -self.FIELDS):
            if values[i] < at_ms:
                break
            first += values[i + 1]
            second += values[i + 2]
        return first, second


class LaneTrack:
    """One lane: its rings, how fast it starts, and since when it breaks its promise."""

    def __init__(self) -> None:
        self.short = Ring(*SHORT)
        self.long = Ring(*LONG)
        self.used_ms = 0
        self.broken_since_ms: int | None = None
        self.late_ms = 0
        self._past: deque[tuple[int, int]] = deque()
        self._started = self._in_time = -1

    def take(self, lane: LaneMeasures, at_ms: int) -> None:
        started, in_time = 0, 0
        # Counters begin anew with an owner: then nothing can be said of the past.
        if 0 <= self._started <= lane.started:
            started = lane.started - self._started
            in_time = min(started, max(0, lane.in_time - self._in_time))
        self._started, self._in_time = lane.started, lane.in_time
        waiting = lane.waiting
        for ring in (self.short, self.long):
            ring.add(at_ms, (started, in_time), (waiting.oldest_ms, waiting.ready))
        if started or waiting.ready:
            self.used_ms = at_ms
        self._past.append((at_ms, started))
        while self._past[0][0] < at_ms - RATE_MS and len(self._past) > 2:
            self._past.popleft()
        self._judge(at_ms, is_late=bool(waiting.late) or in_time < started)

    def _judge(self, at_ms: int, *, is_late: bool) -> None:
        if is_late:
            self.late_ms = at_ms
            if self.broken_since_ms is None:
                self.broken_since_ms = at_ms
        elif at_ms - self.late_ms > CALM_MS:
            self.broken_since_ms = None

    @property
    def starts_per_s(self) -> float:
        past = self._past
        if len(past) < 2:
            return 0.0
        started = sum(count for _, count in past) - past[0][1]
        return started * 1_000 / max(1, past[-1][0] - past[0][0])

    def recent(self, at_ms: int) -> tuple[int, int]:
        """Starts of late, and how many of them were in time."""
        return self.short.since(at_ms - RECENT_MS)


class Trends:
    """All lanes that are tracked, and the slots of all workers."""

    def __init__(self) -> None:
        self.lanes: dict[Key, LaneTrack] = {}
        self.slots_short = Ring(*SHORT)
        self.slots_long = Ring(*LONG)

    def take(self, measures: Measures, wanted: int) -> None:
        at_ms = measures.at_ms
        idle = sorted(
            (key for key, track in self.lanes.items() if track.used_ms < at_ms),
            key=lambda key: -self.lanes[key].used_ms,
        )
        for lane in measures.lanes:
            if lane.slo_ms:
                track = self._track((lane.queue, lane.slo_ms), lane, idle)
                if track is not None:
                    track.take(lane, at_ms)
        there = measures.slots_busy + measures.slots_idle
        for ring in (self.slots_short, self.slots_long):
            ring.add(at_ms, (1, measures.slots_busy), (there, wanted))

    def _track(self, key: Key, lane: LaneMeasures, idle: list[Key]) -> LaneTrack | None:
        """The track of a lane; one that has long been idle makes room for a new one."""
        track = self.lanes.get(key)
        if track is not None:
            return track
        if not lane.started and not lane.waiting.ready:
            return None
        if len(self.lanes) >= LANES_MAX:
            while idle and idle[-1] not in self.lanes:
                idle.pop()
            if not idle:
                return None
            del self.lanes[idle.pop()]
        track = self.lanes[key] = LaneTrack()
        return track
