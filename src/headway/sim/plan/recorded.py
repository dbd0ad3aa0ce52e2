"""Jobs as history tells them, and as they come again: each with its recorded fate."""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Final

import msgspec

from headway.core.defaults import COUNT_MAX, DURATION_MAX_MS
from headway.core.spec import JobSpec
from headway.sim.workload import SPECS_KEPT, Arrival


class AttemptRow(msgspec.Struct, gc=False):
    """One lease; what has not ended yet has no end."""

    started_ms: int
    ended_ms: int | None = None
    end: str | None = None
    wait_ms: int | None = None
    held_ms: int | None = None
    is_again: bool | None = None
    worker: str | None = None
    token: int = 0

    @property
    def ready_ms(self) -> int | None:
        """When the wait began that ended with it; None if it began none."""
        if self.is_again or self.wait_ms is None:
            return None
        return self.started_ms - self.wait_ms - (self.held_ms or 0)


class JobRow(msgspec.Struct):
    """One job with its attempts in their order, but for those long over."""

    queue: str
    slo_ms: int
    tenant: str
    kind: str
    enqueued_ms: int
    ready_ms: int
    ended_ms: int | None = None
    """None: it was not over when history was last read."""
    priority: int | None = None
    cost: int | None = None
    weight: float | None = None
    labels: dict[str, str] | None = None
    attempts: list[AttemptRow] = []


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of history it is. All times are since the Unix epoch."""

    epoch_ms: int
    """When the first job came that was still there at the beginning."""
    begin_ms: int
    """What ended before is left out. Until `from_ms` the replay warms up."""
    from_ms: int
    to_ms: int
    """Waits that begin before the one or from the other on are not judged..."""
    until_ms: int
    """...and jobs that come before this time still take their part of the workers."""
    known_ms: int
    """Until here history is known."""

    def judges(self, ready_ms: int) -> bool:
        return self.from_ms <= ready_ms < self.to_ms


class End(StrEnum):
    """What an attempt comes to."""

    ACK = "ack"
    RETRY = "retry"
    BURY = "bury"
    RELEASE = "release"
    WAIT = "wait"
    LAST_WAIT = "last wait"
    """It waits, and is over with the reply, or when none came."""
    CANCEL = "cancel"


class Step(msgspec.Struct, frozen=True, gc=False):
    """One attempt to come."""

    end: End
    run_ms: int
    after_ms: int | None = None
    """How long after its end the job is ready again; None: as the queue says."""
    token: int = 0
    """The lease that it was."""


class Recorded(Arrival):
    """A job as it comes again."""

    steps: tuple[Step, ...] = ()
    withdrawn_ms: int | None = None
    """It was cancelled or expired then, and no worker had it."""
    is_judged: bool = True
    """False: whether its promise was kept nobody knows yet."""


_ENDS: Final = {
    "ack": End.ACK,
    "retry": End.RETRY,
    "bury": End.BURY,
    # A lost lease gives its job back as a released one does.
    "release": End.RELEASE,
    "lose": End.RELEASE,
    "cancel": End.CANCEL,
    "expire": End.CANCEL,
}
_OVER: Final = frozenset({End.ACK, End.BURY, End.LAST_WAIT, End.CANCEL})

DrawRun = Callable[[JobRow], int]
"""A run time for an attempt of which history knows none."""


def arrivals(rows: Iterable[JobRow], span: Span, draw: DrawRun) -> Iterator[Recorded]:
    """The jobs in the order of their rows; equal specs are shared."""
    specs: dict[tuple[object, ...], JobSpec] = {}
    for row in rows:
        steps = _steps(row, span, draw)
        is_known = bool(row.attempts) or row.ended_ms is not None
        withdrawn_ms = None
        if row.ended_ms is not None and not _ends_by_worker(row):
            withdrawn_ms = row.ended_ms
        yield Recorded(
            at_ms=row.enqueued_ms,
            queue=row.queue,
            spec=_spec(row, _ready_ms(row, span), specs),
            run_ms=steps[0].run_ms,
            load=0,
            steps=steps,
            withdrawn_ms=withdrawn_ms,
            is_judged=is_known or row.ready_ms + row.slo_ms < span.known_ms,
        )


def _ready_ms(row: JobRow, span: Span) -> int:
    """Of a job that was under way already: of the wait that is its first here."""
    if row.enqueued_ms < span.begin_ms and row.attempts:
        return row.attempts[0].ready_ms or row.ready_ms
    return row.ready_ms


def _ends_by_worker(row: JobRow) -> bool:
    if not row.attempts:
        return False
    end = row.attempts[-1].end
    return end == "wait" or _ENDS.get(end or "") in _OVER


def _steps(row: JobRow, span: Span, draw: DrawRun) -> tuple[Step, ...]:
    steps: list[Step] = []
    followers = [*row.attempts[1:], None]
    for attempt, follower in zip(row.attempts, followers, strict=False):
        if attempt.ended_ms is None:
            run_ms = max(draw(row), span.known_ms - attempt.started_ms)
            return (*steps, Step(End.ACK, run_ms))
        steps.append(_step(row, attempt, follower, attempt.ended_ms, span))
    if not steps or steps[-1].end not in _OVER:
        steps.append(Step(End.ACK, draw(row)))
    return tuple(steps)


def _step(
    row: JobRow,
    attempt: AttemptRow,
    follower: AttemptRow | None,
    ended_ms: int,
    span: Span,
) -> Step:
    run_ms = max(0, ended_ms - attempt.started_ms)
    ready_ms = None if follower is None else follower.ready_ms
    after_ms = None if ready_ms is None else max(0, ready_ms - ended_ms)
    if attempt.end != "wait":
        end = _ENDS.get(attempt.end or "", End.ACK)
        return Step(end, run_ms, after_ms, attempt.token)
    if follower is not None:
        return Step(End.WAIT, run_ms, after_ms or 0, attempt.token)
    over_ms = span.known_ms if row.ended_ms is None else row.ended_ms
    return Step(End.LAST_WAIT, run_ms, max(0, over_ms - ended_ms), attempt.token)


def _spec(
    row: JobRow, ready_ms: int, specs: dict[tuple[object, ...], JobSpec]
) -> JobSpec:
    """Only what history tells ends a job: neither age, time nor attempts do."""
    labels = tuple(sorted(row.labels.items())) if row.labels else ()
    place = (row.queue, row.kind, row.tenant, row.slo_ms)
    key = (*place, row.priority, row.cost, row.weight, labels)
    spec = specs.get(key)
    if spec is None:
        if len(specs) >= SPECS_KEPT:
            specs.clear()
        spec = specs[key] = JobSpec(
            kind=row.kind,
            tenant=row.tenant,
            slo_ms=row.slo_ms,
            priority=row.priority,
            cost=row.cost,
            weight=row.weight,
            labels=row.labels or None,
            timeout_ms=DURATION_MAX_MS,
            lifetime_ms=DURATION_MAX_MS,
            attempts_max=COUNT_MAX,
        )
    if ready_ms > row.enqueued_ms:
        return msgspec.structs.replace(spec, run_at_ms=ready_ms)
    return spec
