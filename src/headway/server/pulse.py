"""The figures of this moment, worked out once for everybody who looks.

While somebody looks the owner is asked about once a second, else now and then so that
trends have no gaps; it never spends more than a small share of its time on it.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import msgspec

from headway.core.capacity import Wanted
from headway.runtime.errors import RuntimeFailure
from headway.runtime.measures import QUEUES_MAX, LaneMeasures, Measures
from headway.runtime.owner import Ask
from headway.runtime.views import Autoscale, Measure
from headway.server.desk import Desk
from headway.server.http.message import Response
from headway.server.scopes import Bearer, Verb
from headway.server.trends import Key, LaneTrack, Ring, Trends
from headway.server.trends_file import TrendsFile, kept
from headway.wire import live as wire
from headway.wire.queues import Counts

WATCHED_S: Final = 1.0
ALONE_S: Final = 10.0
"""How often the owner is asked while somebody looks, and while nobody does."""
FORGOTTEN_S: Final = 15.0
"""Whoever has not asked for so long looks no more."""
SPENT: Final = 20
SPENT_ALONE: Final = 100
"""Between two looks at least so many times as long passes as one takes."""
CHEAP_S: Final = 0.05
ADVISED: Final = 5
WAIT_S: Final = 25.0
"""How long a listener waits for news before it is answered what is known."""
LISTENERS_MAX: Final = 1_000
KEEP_S: Final = 60.0
"""How often trends are written down, for the next start."""
LANES_SHOWN: Final = 50
TRENDS_SHOWN: Final = 24
_encode: Final = msgspec.json.Encoder().encode
_UNTRACKED: Final = LaneTrack()


class Pulse:
    """Asks, remembers, and tells those who listen."""

    def __init__(
        self,
        desk: Desk,
        broken: Callable[[Exception], None],
        file: TrendsFile | None = None,
    ) -> None:
        """`broken` hears of a bug; the next look is taken all the same."""
        self._desk = desk
        self._broken = broken
        self._file = file
        self._keep_s = 0.0
        self._loop = asyncio.get_running_loop()
        self._listening: dict[Listening, None] = {}
        self._awake = asyncio.Event()
        self._asked_s = -FORGOTTEN_S
        self._told: bytes | None = None
        """The answer for those who may read everything, once it was asked for."""
        self._wanted: Wanted | None = None
        self._waits_ms: dict[Key, int] = {}
        self._is_cheap = True
        self._commits = (0, 0, 0.0, 0.0)
        self.trends = Trends()
        self.number = 0
        self.since_ms = 0
        self.measures: Measures | None = None
        self.commits_per_s = 0.0
        self.commit_ms = 0.0
        self.batch = 0.0

    @property
    def listeners(self) -> int:
        return len(self._listening)

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            began_s = self._loop.time()
            try:
                await self._look()
                await self._keep()
            except RuntimeFailure:
                pass  # The owner is busy or gone, and others say so.
            except Exception as error:
                self._broken(error)
            spent_s = self._loop.time() - began_s
            is_watched = self._loop.time() - self._asked_s < FORGOTTEN_S
            self._awake.clear()
            if is_watched:
                await asyncio.sleep(max(WATCHED_S, SPENT * spent_s))
            else:
                pause_s = max(ALONE_S, SPENT_ALONE * spent_s)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._awake.wait(), pause_s)

    async def _look(self) -> None:
        began_s = self._loop.time()
        measures = await self._answer(Measure(is_brief=True))
        wanted: Any = self._wanted
        # Where a look takes its time, advice is asked for with some of them only.
        if wanted is None or self._is_cheap or self.number % ADVISED == 0:
            wanted = await self._answer(Autoscale(is_brief=True))
        self._is_cheap = self._loop.time() - began_s < CHEAP_S
        if isinstance(measures, Measures) and isinstance(wanted, Wanted):
            if self._file is not None and self.measures is None:
                read = self._file.read
                found = await asyncio.to_thread(read, measures.at_ms)
                self.trends, self.since_ms = found
            self.take(measures, wanted)

    async def _keep(self) -> None:
        if self._file is None or self.measures is None:
            return
        if self._loop.time() >= self._keep_s:
            self._keep_s = self._loop.time() + KEEP_S
            found = kept(self.trends, self.since_ms)
            await asyncio.to_thread(self._file.write, found)

    def close(self) -> None:
        """For the next start, trends up to this moment."""
        if self._file is not None and self.measures is not None:
            self._file.write(kept(self.trends, self.since_ms))

    async def _answer(self, ask: Ask) -> Any:
        return await asyncio.wrap_future(self._desk.submit(ask))

    def take(self, measures: Measures, wanted: Wanted) -> None:
        """These are the figures now."""
        self.number += 1
        self.since_ms = self.since_ms or measures.at_ms
        self._count_commits(measures)
        self.measures, self._wanted = measures, wanted
        self._told = None
        self._waits_ms = {
            (lane.queue, lane.slo_ms): lane.waiting.oldest_ms for lane in measures.lanes
        }
        self.trends.take(measures, wanted.slots)
        for listening in list(self._listening):
            listening.end()

    def listen(self, after: int, bearer: Bearer, tell: Any) -> "Listening":
        """Tells what is known when it is newer than `after`, or has been for long."""
        self._asked_s = self._loop.time()
        self._awake.set()
        listening = Listening(self, bearer, tell)
        if after != self.number and self.measures is not None:
            listening.end()
        else:
            self._listening[listening] = None
            listening.begin(self._loop)
        return listening

    def leave(self, listening: "Listening") -> None:
        self._listening.pop(listening, None)

    def end_waits(self) -> None:
        """The server stops: nobody waits any longer."""
        for listening in list(self._listening):
            listening.end()

    def answer(self, bearer: Bearer) -> Response:
        """What the bearer may see of it; the same bytes for all who may see all."""
        if not bearer.may(Verb.READ):
            return Response(200, _encode(self.shown(bearer)))
        if self._told is None:
            self._told = _encode(self.shown(bearer))
        return Response(200, self._told)

    def shown(self, bearer: Bearer) -> wire.Live:
        measures = self.measures
        if measures is None:
            return _NOTHING
        at_ms = measures.at_ms
        is_all = bearer.may(Verb.READ)
        mine = [
            (lane, self.track(lane))
            for lane in measures.lanes
            if (bearer.may(Verb.READ, lane.queue) if lane.slo_ms else is_all)
        ]
        recent = [track.recent(at_ms) for _, track in mine]
        started = sum(starts for starts, _ in recent)
        named = [(lane, track) for lane, track in mine if lane.slo_ms]
        named.sort(key=_trouble)
        counts = _counts(measures, bearer, is_all=is_all)
        return wire.Live(
            number=self.number,
            at_ms=at_ms,
            since_ms=self.since_ms,
            lanes=[_lane(lane, track, at_ms) for lane, track in named[:LANES_SHOWN]],
            lanes_total=len(named),
            lanes_broken=sum(is_broken(*one) for one in named),
            counts=counts,
            arrivals_per_s=sum(lane.per_s for lane, _ in mine),
            starts_per_s=sum(track.starts_per_s for _, track in mine),
            attained=sum(kept for _, kept in recent) / started if started else None,
            slots=self._slots(measures) if is_all else None,
        )

    def track(self, lane: LaneMeasures) -> LaneTrack:
        return self.trends.lanes.get((lane.queue, lane.slo_ms), _UNTRACKED)

    def oldest_ms(self, queue: str, slos_ms: list[int]) -> int | None:
        """How long the oldest ready job of a queue has waited, where it is watched."""
        waits_ms = self._waits_ms
        keys = [(queue, slo_ms) for slo_ms in slos_ms]
        return max((waits_ms[key] for key in keys if key in waits_ms), default=None)

    def trends_of(
        self, bearer: Bearer, queue: str | None, *, is_long: bool
    ) -> wire.Trends:
        """Of one queue, or of the lanes in most trouble; shortest SLO first."""

        def ring(track: LaneTrack) -> Ring:
            return track.long if is_long else track.short

        keys = [
            key
            for key in self.trends.lanes
            if queue in (None, key[0]) and bearer.may(Verb.READ, key[0])
        ]
        if len(keys) > TRENDS_SHOWN:
            keys.sort(key=self._urgency)
        shown = sorted(keys[:TRENDS_SHOWN], key=lambda key: (key[1], key[0]))
        slots = self.trends.slots_long if is_long else self.trends.slots_short
        points = slots.points() if bearer.may(Verb.READ) and queue is None else []
        return wire.Trends(
            slots.step_ms,
            self.since_ms,
            [
                wire.LaneTrend(*key, ring(self.trends.lanes[key]).points())
                for key in shown
            ],
            [
                (at_ms, busy // max(1, looks), there, wanted)
                for at_ms, looks, busy, there, wanted in points
            ],
        )

    def _urgency(self, key: Key) -> tuple[bool, int]:
        track = self.trends.lanes[key]
        return track.broken_since_ms is None, -track.used_ms

    def _slots(self, measures: Measures) -> wire.Slots:
        wanted = self._wanted
        assert wanted is not None
        return wire.Slots(
            measures.slots_busy,
            measures.slots_idle,
            wanted.slots,
            wanted.reason,
            wanted.slots_max,
        )

    def _count_commits(self, measures: Measures) -> None:
        """Commits of late, by what the counters had before."""
        commits = measures.commits
        now = (
            measures.at_ms,
            commits.commits,
            commits.time_us.total,
            commits.batch.total,
        )
        past, self._commits = self._commits, now
        count = now[1] - past[1]
        if past[0] and count >= 0 and now[0] > past[0]:
            self.commits_per_s = count * 1_000 / (now[0] - past[0])
            if count:
                self.commit_ms = (now[2] - past[2]) / count / 1_000
                self.batch = (now[3] - past[3]) / count


class Listening:
    """Somebody who waits for the next figures."""

    def __init__(
        self, pulse: Pulse, bearer: Bearer, tell: Callable[[Response], None]
    ) -> None:
        self._pulse = pulse
        self._bearer = bearer
        self._tell = tell
        self._timer: asyncio.TimerHandle | None = None
        self.is_waiting = True

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(WAIT_S, self.end)

    def end(self) -> None:
        """It is told what is known by now."""
        self.abandon()
        self._tell(self._pulse.answer(self._bearer))

    def abandon(self) -> None:
        self.is_waiting = False
        self._pulse.leave(self)
        if self._timer is not None:
            self._timer.cancel()


def is_broken(lane: LaneMeasures, track: LaneTrack) -> bool:
    return track.broken_since_ms is not None or lane.waiting.late > 0


def _trouble(one: tuple[LaneMeasures, LaneTrack]) -> tuple[bool, float, int, str]:
    """Broken promises first, then by how much of its promise the oldest job has had."""
    lane, _ = one
    used = lane.waiting.oldest_ms / lane.slo_ms
    return (not is_broken(*one), -used, lane.slo_ms, lane.queue)


def _lane(lane: LaneMeasures, track: LaneTrack, at_ms: int) -> wire.LaneLive:
    started, in_time = track.recent(at_ms)
    waiting = lane.waiting
    return wire.LaneLive(
        queue=lane.queue,
        slo_ms=lane.slo_ms,
        ready=waiting.ready,
        late=waiting.late,
        oldest_ms=waiting.oldest_ms,
        is_sure=waiting.is_sure,
        arrivals_per_s=lane.per_s,
        starts_per_s=track.starts_per_s,
        run_ms=lane.run_ms,
        attained=in_time / started if started else None,
        broken_since_ms=track.broken_since_ms,
    )


def _counts(measures: Measures, bearer: Bearer, *, is_all: bool) -> Counts:
    queues = measures.queues
    if not is_all:
        # The last of so many stands for all the others, whatever it is called.
        own = queues[: QUEUES_MAX - 1]
        queues = tuple(one for one in own if bearer.may(Verb.READ, one.name))
    mine = queues
    return Counts(
        sum(queue.ready for queue in mine),
        sum(queue.scheduled for queue in mine),
        sum(queue.leased for queue in mine),
        sum(queue.waiting for queue in mine),
        sum(queue.dead for queue in mine),
    )


_NOTHING: Final = wire.Live(
    number=0,
    at_ms=0,
    since_ms=0,
    lanes=[],
    lanes_total=0,
    lanes_broken=0,
    counts=Counts(0, 0, 0, 0, 0),
    arrivals_per_s=0.0,
    starts_per_s=0.0,
    attained=None,
    slots=None,
)
