"""Between an owner and its throttlers: who is asked when, and what comes of it.

All of it happens in the owner's thread, between two steps; throttlers have threads of
their own, and come in by `heard` alone. Of one queue a single batch is under way at a
time, and the next is put together when all verdicts of the last are decided: so what a
throttler is told of what runs is never older than its own verdicts.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from headway.core.commands import Judge, Verdict
from headway.core.job import Job
from headway.core.limits import Gauge, RateGauge
from headway.core.queue import Queue
from headway.core.states import READY
from headway.runtime.owner import Owner
from headway.runtime.running import Tally
from headway.runtime.throttler import Answered, Asked, Throttler, Throttling
from headway.throttling import LimitInUse, ThrottledJob

BATCH_JOBS: Final = 100
BATCH_BYTES: Final = 4 << 20
"""Jobs of one batch, and what their payloads may add up to."""


class Bench:
    """One queue: the jobs that its throttler is to be asked about."""

    def __init__(self, owner: Owner, tally: Tally, throttler: Throttler) -> None:
        self._meter = owner.meter
        self._jobs = owner.partition.book.jobs
        self._tally = tally
        self._throttler = throttler
        self.waiting: dict[int, Job] = {}
        self._asked: dict[int, Job] = {}
        """The batch that is under way."""
        self._again: list[tuple[int, int]] = []
        """When to ask again, and about which; a heap."""
        self._failed: dict[int, Job] = {}
        self._failures: dict[int, int] = {}
        """How often there was no verdict on it, of jobs that still wait for one."""
        self._cleared: deque[Job] = deque()
        """Those that were let start and did not at once, in the order of their time."""

    def next_ms(self) -> int | None:
        """When somebody is to be asked again."""
        return self._again[0][0] if self._again and not self._asked else None

    def judged(self, queue: Queue, answered: Answered, now_ms: int) -> None:
        """What was answered is decided."""
        judge = answered.judge
        seq = judge.seq
        job = self._asked.pop(seq)
        self._count(queue.name, answered)
        # A job that was told to start counts from now on, even if it can't yet. It may
        # have left memory and come back as another object by now.
        here = self._jobs.get(seq)
        if here is None:
            self._tally.drop(job)
        else:
            self._tally.look(here)
            if here.state is READY and here.cleared_ms:
                self._cleared.append(here)
        if judge.verdict is Verdict.FAILED and queue.asked.get(seq) is job:
            if answered.is_own:
                self._failures[seq] = self._failures.get(seq, 0) + 1
            self._failed[seq] = job
            heappush(self._again, (now_ms + answered.again_ms, seq))
        else:
            self._failures.pop(seq, None)

    def look(self, queue: Queue, now_ms: int) -> None:
        """Asks about whatever there is, unless it is asking already."""
        if self._asked:
            return
        while self._again and self._again[0][0] <= now_ms:
            _, seq = heappop(self._again)
            job = self._failed.pop(seq, None)
            if job is not None:
                self.waiting.setdefault(seq, job)
        self._end_starts(now_ms)
        if self.waiting:
            asked = self._batch(queue, now_ms)
            if asked:
                self._throttler.ask(asked, self._tally.take())

    def _end_starts(self, now_ms: int) -> None:
        """What was let start a while ago and did not start counts no more."""
        while self._cleared and self._cleared[0].cleared_ms <= now_ms:
            job = self._cleared.popleft()
            here = self._jobs.get(job.seq)
            if here is None or (
                here.state is READY
                and here.cleared_ms <= now_ms
                and not here.timeout_left_ms
            ):
                self._tally.drop(job)

    def _batch(self, queue: Queue, now_ms: int) -> list[Asked]:
        batch: list[Asked] = []
        size = 0
        waiting = self.waiting
        while waiting and len(batch) < BATCH_JOBS and size < BATCH_BYTES:
            seq = next(iter(waiting))
            job = waiting.pop(seq)
            if queue.asked.get(seq) is not job:
                # It has moved on, or was read anew and will be asked about as that.
                self._failures.pop(seq, None)
                continue
            self._asked[seq] = job
            self._tally.ask(job)
            given = _given(queue, job, now_ms)
            size += len(given.payload)
            batch.append(Asked(given, self._failures.get(seq, 0)))
        return batch

    def _count(self, queue: str, answered: Answered) -> None:
        verdicts, errors = self._meter.verdicts, self._meter.unheard
        if answered.error:
            key = queue, answered.error
            errors[key] = errors.get(key, 0) + 1
        elif answered.judge.verdict is not Verdict.FAILED:
            key = queue, str(answered.judge.verdict)
            verdicts[key] = verdicts.get(key, 0) + 1


class Judging:
    """The throttlers of one owner."""

    def __init__(
        self, owner: Owner, throttling: Throttling, stir: Callable[[], None]
    ) -> None:
        """`stir` makes the owner take a step, and may be called by any thread."""
        self._owner = owner
        self._stir = stir
        self._told: deque[tuple[str, Answered]] = deque()
        self._decided: list[tuple[str, Answered]] = []
        self._benches: dict[str, Bench] = {}
        self._throttlers: list[Throttler] = []
        for queue, place in throttling.places.items():
            throttler = Throttler(
                queue, place, throttling.timeout_ms, self._hear(queue)
            )
            self._throttlers.append(throttler)
            tally = owner.tally_of(queue)
            self._benches[queue] = Bench(owner, tally, throttler)

    def heard(self) -> list[Judge]:
        """What throttlers have answered by now: for the next step of the owner."""
        while self._told:
            self._decided.append(self._told.popleft())
        return [answered.judge for _, answered in self._decided]

    def look(self, now_ms: int) -> None:
        """After a step, in which whatever was heard before it was decided."""
        queues = self._owner.partition.book.queues
        decided, self._decided = self._decided, []
        for name, answered in decided:
            self._benches[name].judged(queues[name], answered, now_ms)
        asks = self._owner.asks
        if asks:
            for seq, job in asks.items():
                self._benches[job.queue].waiting[seq] = job
            asks.clear()
        for name, bench in self._benches.items():
            if name in queues:
                bench.look(queues[name], now_ms)

    def next_ms(self) -> int | None:
        """When `look` is to be called again, if nothing else happens."""
        times = [bench.next_ms() for bench in self._benches.values()]
        return min((at_ms for at_ms in times if at_ms is not None), default=None)

    def close(self) -> None:
        for throttler in self._throttlers:
            throttler.close()

    def _hear(self, queue: str) -> Callable[[Answered], None]:
        def hear(answered: Answered) -> None:
            self._told.append((queue, answered))
            self._stir()

        return hear


def _given(queue: Queue, job: Job, now_ms: int) -> ThrottledJob:
    """The job as its throttler sees it."""
    spec = job.spec
    turn = job.turn
    assert turn is not None
    gauges = (*queue.rules.gauges, *turn.strand.gauges, *turn.tenancy.rule.gauges)
    return ThrottledJob(
        seq=job.seq,
        queue=job.queue,
        kind=job.kind,
        tenant=job.tenant,
        labels=dict(spec.labels or {}),
        payload=spec.payload if job.payload is None else job.payload,
        priority=job.priority,
        cost=job.cost,
        slo_ms=job.slo_ms,
        attempt=job.attempt + 1,
        enqueued_ms=job.enqueued_ms,
        ready_ms=job.run_at_ms,
        expires_ms=job.expires_ms,
        now_ms=now_ms,
        limits=tuple(_in_use(gauge, now_ms) for gauge in gauges),
    )


def _in_use(gauge: Gauge, now_ms: int) -> LimitInUse:
    if isinstance(gauge, RateGauge):
        used, most = gauge.unpaid(now_ms), gauge.burst
    else:
        used, most = gauge.used, gauge.max
    return LimitInUse(gauge.limit, gauge.value, used, most)
