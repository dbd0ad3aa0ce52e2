"""Counts what happens, after it is durable: one row of plain integers for each lane.

It is fed with every event, so it makes no objects of its own on the way: a row is a list
of counters, followed by the buckets of two histograms.
"""

from collections.abc import Callable, Iterable
from math import exp
from time import perf_counter
from typing import Any, Final

from msgspec.structs import astuple

from headway.core import events
from headway.core.commands import Decision
from headway.core.job import Job
from headway.store.port import Batch

LANES_MAX: Final = 2_000
"""Lanes with a row of their own; the others share one."""
OTHER: Final = ("other", 0)
"""The queue and SLO of that row. No lane has an SLO of 0."""
ROLL_MS: Final = 1_000
"""How often averages move on."""
AVERAGE_MS: Final = 30_000
"""Over about how long arrivals and run times are averaged..."""
LONG_MS: Final = 300_000
"""...and arrivals once more, since a burst is no trend: of jobs that may wait..."""
GROWTH: Final = 1.5
"""...no more are expected than so many times the long average."""
WARM_MS: Final = 5_000.0
"""What came in a shorter time than this says nothing of how much comes in a second."""

COUNTERS: Final = (
    "enqueued",
    "started",
    "in_time",
    "acked",
    "retried",
    "lost",
    "buried",
    "expired",
    "cancelled",
    "released",
    "readied",
    "runs",
    "run_sum_ms",
    "run_sum_sq",
    "wait_sum_ms",
)
"""The places of a row that count."""
(
    ENQUEUED,
    STARTED,
    IN_TIME,
    ACKED,
    RETRIED,
    LOST,
    BURIED,
    EXPIRED,
    CANCELLED,
    RELEASED,
    READIED,
    RUNS,
    RUN_SUM,
    RUN_SQ,
    WAIT_SUM,
) = range(len(COUNTERS))
BUCKETS: Final = 64
"""The n-th holds what took up to 2 ** n ms, and more than half of that."""
WAIT: Final = len(COUNTERS)
RUN: Final = WAIT + BUCKETS
ROW: Final = RUN + BUCKETS

Row = list[int]
# Where fields of events lie, as numbers that compiled code knows; a test compares them.
_AT_MS: Final = 0
_SEQ: Final = 1
_QUEUE: Final = 3
_SLO_MS: Final = 4
_RUN_AT_MS: Final = 7
_RUN_MS: Final = 8
_WAIT_MS: Final = 10
PLACES: Final = {
    events.Enqueued: {"at_ms": _AT_MS, "seq": _SEQ, "run_at_ms": _RUN_AT_MS},
    events.Acked: {"run_ms": _RUN_MS},
    events.Leased: {"queue": _QUEUE, "slo_ms": _SLO_MS, "wait_ms": _WAIT_MS},
}
_RARE: Final[dict[type, tuple[int, ...]]] = {
    events.Retried: (RETRIED,),
    events.Lost: (LOST, READIED),
    events.Released: (RELEASED, READIED),
    events.Buried: (BURIED,),
    events.Expired: (EXPIRED,),
    events.Cancelled: (CANCELLED,),
    events.Promoted: (READIED,),
    events.Redriven: (READIED,),
    events.Waited: (),
}
_RUN_ENDS: Final = frozenset({events.Retried, events.Waited, events.Released})
"""Beside acks: a worker was busy with these, too."""


class Rates:
    """Averages of one lane: sums in which the past counts ever less."""

    __slots__ = ("_past", "readied", "readied_long", "run_ms", "run_sq_ms", "runs")

    def __init__(self) -> None:
        self._past = (0, 0, 0, 0)
        self.readied = 0.0
        self.readied_long = 0.0
        self.runs = 0.0
        self.run_ms = 0.0
        self.run_sq_ms = 0.0

    def roll(self, row: Row, keep: float, keep_long: float) -> None:
        """Adds what has come since the last time; of the sums `keep` is left."""
        now = (row[READIED], row[RUNS], row[RUN_SUM], row[RUN_SQ])
        past = self._past
        more = now[0] - past[0]
        self.readied = self.readied * keep + more
        self.readied_long = self.readied_long * keep_long + more
        if self.runs > 1e-6:
            self.runs *= keep
            self.run_ms *= keep
            self.run_sq_ms *= keep
        if now[1] != past[1]:
            self.runs += now[1] - past[1]
            self.run_ms += now[2] - past[2]
            self.run_sq_ms += now[3] - past[3]
        self._past = now

    def moments(self) -> tuple[float, float]:
        """Mean run time and mean of its square; 0 before one has ended."""
        if not self.runs:
            return 0.0, 0.0
        return self.run_ms / self.runs, self.run_sq_ms / self.runs


class Meter:
    """What one owner has seen happen since it began."""

    def __init__(self, stopwatch: Callable[[], float] = perf_counter) -> None:
        self.stopwatch = stopwatch
        """In seconds; it tells how long a commit took and decides nothing."""
        self.rows: dict[tuple[str, int], Row] = {}
        self.rates: dict[tuple[str, int], Rates] = {}
        self.sizes: dict[str, int] = {}
        """Payload bytes ever enqueued, by queue."""
        self.replies: dict[str, int] = {}
        """Replies that nobody waited for, by what they were."""
        self.verdicts: dict[tuple[str, str], int] = {}
        """Of throttlers, by queue and verdict..."""
        self.unheard: dict[tuple[str, str], int] = {}
        """...and how often there was none, by queue and reason."""
        self.ticks = 0
        self.ticks_skipped = 0
        self.tick_late_ms = 0
        """Of all ticks, by how much they came after their time."""
        self.tick_late = [0] * BUCKETS
        self.commits = 0
        self.commit_rows = 0
        self.commit_s = 0.0
        self.commit_us = [0] * BUCKETS
        """Commits by their time, in microseconds."""
        self.batches = [0] * BUCKETS
        """Decisions by the number of their commands."""
        self.commands = 0
        self.averaged_ms = 0.0
        """The time that the averages stand for, weighted as they are."""
        self.averaged_long_ms = 0.0
        self._by_slo: dict[int, dict[str, Row]] = {}
        self._rolled_ms = 0

    def committed(self, batch: Batch, seconds: float) -> None:
        """A batch is durable, and took so long to become it."""
        self.commits += 1
        self.commit_rows += (
            len(batch.puts)
            + len(batch.moves)
            + len(batch.ends)
            + len(batch.facts)
            + len(batch.keys)
        )
        self.commit_s += seconds
        self.commit_us[bucket_of(int(seconds * 1_000_000))] += 1

    def asked(self, commands: int) -> None:
        """So many commands are decided together."""
        if commands:
            self.commands += commands
            self.batches[bucket_of(commands)] += 1

    def decided(self, decision: Decision, now_ms: int) -> None:
        """This was decided, and holds."""
        if decision.events:
            self._count(decision.events, decision.jobs)
        if now_ms >= self._rolled_ms + ROLL_MS:
            self.roll(now_ms)

    def roll(self, now_ms: int) -> None:
        """Brings the averages up to date."""
        if not self._rolled_ms:
            self._rolled_ms = now_ms
        passed_ms = now_ms - self._rolled_ms
        if passed_ms <= 0:
            return
        self._rolled_ms = now_ms
        keep = exp(-passed_ms / AVERAGE_MS)
        keep_long = exp(-passed_ms / LONG_MS)
        self.averaged_ms = self.averaged_ms * keep + passed_ms
        self.averaged_long_ms = self.averaged_long_ms * keep_long + passed_ms
        for key, row in self.rows.items():
            self.rates[key].roll(row, keep, keep_long)

    def per_s(self, key: tuple[str, int]) -> float:
        """Jobs of a lane that became ready in a second, lately."""
        rates = self.rates.get(key)
        if rates is None:
            return 0.0
        return rates.readied * 1_000 / max(self.averaged_ms, WARM_MS)

    def per_s_for(self, key: tuple[str, int]) -> float:
        """The same for those who staff a lane: where jobs may wait, a burst counts less.

        What came beyond that waits, and is seen there.
        """
        short = self.per_s(key)
        if key[1] < 2 * AVERAGE_MS or not short:
            return short
        over_ms = max(self.averaged_long_ms, WARM_MS)
        long = self.rates[key].readied_long * 1_000 / over_ms
        return min(short, GROWTH * long)

    def _count(self, happened: Iterable[Any], jobs: list[Job]) -> None:
        """Most events come after one that counts as the same: those are added at once."""
        leased, acked, enqueued = events.Leased, events.Acked, events.Enqueued
        last: type | None = None
        queue, slo_ms, value = "", 0, 0
        alike = first_new = 0
        for event in happened:
            kind = type(event)
            if kind is not leased and kind is not acked and kind is not enqueued:
                self._count_rare(kind, event)
                continue
            # All fields at one go: one after another they take far longer.
            fields = astuple(event)
            its_queue: str = fields[_QUEUE]
            its_slo_ms: int = fields[_SLO_MS]
            its_value: int
            if kind is leased:
                its_value = fields[_WAIT_MS]
            elif kind is acked:
                its_value = fields[_RUN_MS]
            else:
                at_ms: int = fields[_AT_MS]
                run_at_ms: int = fields[_RUN_AT_MS]
                its_value = 1 if run_at_ms <= at_ms else 0
                if not first_new:
                    first_new = fields[_SEQ]
            is_alike = kind is last and its_value == value and its_slo_ms == slo_ms
            if is_alike and its_queue == queue:
                alike += 1
                continue
            if last is not None:
                self._add(last, queue, slo_ms, value, alike)
            last, queue, slo_ms, value = kind, its_queue, its_slo_ms, its_value
            alike = 1
        if last is not None:
            self._add(last, queue, slo_ms, value, alike)
        if first_new:
            self._weigh(jobs, first_new)

    def _weigh(self, jobs: list[Job], first_new: int) -> None:
        """Jobs from that number on came just now."""
        new = [job for job in jobs if job.seq >= first_new]
        queue, size = new[0].queue, 0
        for job in new:
            if job.queue != queue:
                self.sizes[queue] = self.sizes.get(queue, 0) + size
                queue, size = job.queue, 0
            size += len(job.spec.payload)
        self.sizes[queue] = self.sizes.get(queue, 0) + size

    def _add(self, kind: type, queue: str, slo_ms: int, value: int, count: int) -> None:
        """So many events of a kind: leased or acked after `value` ms, or enqueued, where
        it is 1 if they were ready at once.
        """
        row = self._row(queue, slo_ms)
        if kind is events.Leased:
            row[STARTED] += count
            row[WAIT_SUM] += count * value
            row[WAIT + bucket_of(value)] += count
            if value <= slo_ms:
                row[IN_TIME] += count
        elif kind is events.Acked:
            row[ACKED] += count
            row[RUNS] += count
            row[RUN_SUM] += count * value
            row[RUN_SQ] += count * value * value
            row[RUN + bucket_of(value)] += count
        else:
            row[ENQUEUED] += count
            row[READIED] += count * value

    def _count_rare(self, kind: type, event: Any) -> None:
        places = _RARE.get(kind)
        if places is not None:
            row = self._row(event.queue, event.slo_ms)
            for place in places:
                row[place] += 1
            if kind in _RUN_ENDS:
                run_ms = event.run_ms
                row[RUNS] += 1
                row[RUN_SUM] += run_ms
                row[RUN_SQ] += run_ms * run_ms
                row[RUN + bucket_of(run_ms)] += 1
        elif kind is events.Replied:
            if not event.is_done:
                self._row(event.queue, event.slo_ms)[READIED] += 1
        elif kind is events.ReplyKept:
            self.replies[event.fate] = self.replies.get(event.fate, 0) + 1
        elif kind is events.Ticked:
            late_ms = max(0, event.at_ms - event.tick_ms)
            self.ticks += 1
            self.ticks_skipped += event.seq == 0
            self.tick_late_ms += late_ms
            self.tick_late[bucket_of(late_ms)] += 1

    def _row(self, queue: str, slo_ms: int) -> Row:
        """The row of a lane, made if there is room for one more."""
        row = self._by_slo.get(slo_ms, {}).get(queue)
        if row is not None:
            return row
        key = (queue, slo_ms) if len(self.rows) < LANES_MAX - 1 else OTHER
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = [0] * ROW
            self.rates[key] = Rates()
        if key is not OTHER:
            self._by_slo.setdefault(slo_ms, {})[queue] = row
        return row


def bucket_of(value: int) -> int:
    """The first power of two that is not below the value."""
    return (value - 1).bit_length() if value > 1 else 0
