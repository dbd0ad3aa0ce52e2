"""What really happened in a span of history: promises kept, and who served.

One pass over all jobs of the span tells all that every replay of it needs to know.
"""

from collections import defaultdict
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

import msgspec

from headway.core.config import QueueConfig
from headway.core.facts import QueueFact
from headway.sim.measure import Ending, Measure
from headway.sim.plan import rules
from headway.sim.plan.recorded import DrawRun, JobRow, Span
from headway.sim.plan.rules import RuleRow
from headway.sim.plan.slots import Run, Waited, estimate
from headway.sim.result import Outcomes, Result
from headway.sim.scenario import Exact, Load, Scenario, Service, Workers

SAMPLES: Final = 200
"""Run times that are kept of a kind, evenly spaced from the shortest to the longest."""
RUN_MS: Final = 1_000
"""The run time of a kind of which none has ended."""
DRAIN_MS: Final = 60_000


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """The span as it was."""

    result: Result
    workers: tuple[Workers, ...]
    """After the epoch of the span."""
    gap_ms: int
    """How long a slot took from one job to the next that waited."""
    cuts_ms: dict[int, int]
    """By token: how long a job held its slot, where its end was heard of later."""
    runs_ms: dict[str, list[int]]
    """Run times by queue and kind, for attempts that never came to an end."""
    busy_ms: int
    """Within the span, over all slots."""
    slo_max_ms: int


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """What every replay of a span gets, but for the jobs."""

    span: Span
    queues: tuple[str, ...]
    rules: tuple[RuleRow, ...]
    happened: Happened | None = None

    def configs(self) -> dict[str, QueueConfig]:
        return rules.configs(self.rules, self.queues, self.span.begin_ms)

    def scenario(
        self, workers: tuple[Workers, ...], configs: Iterable[QueueConfig]
    ) -> Scenario:
        """The frame of a run: its jobs come from the recording."""
        span = self.span
        slo_ms = 0 if self.happened is None else self.happened.slo_max_ms
        return Scenario(
            name="recorded",
            title="Recorded traffic",
            epoch_ms=span.epoch_ms,
            duration_ms=span.until_ms - span.epoch_ms,
            # Who has not started by then is late, whatever comes after.
            drain_ms=slo_ms + DRAIN_MS,
            workers=workers,
            queues=tuple(configs),
            loads=(
                Load(
                    name="recorded",
                    queue=self.queues[0],
                    arrivals=Exact(at_ms=()),
                    service=Service(mean_ms=RUN_MS),
                ),
            ),
        )


def look_back(recording: Recording, rows: Iterable[JobRow]) -> Happened:
    """What happened, told from its jobs in any order."""
    return _Look(recording).over(rows)


def run_draw(happened: Happened, seed: int) -> DrawRun:
    """Draws a run time like those of the job's kind, always the same for a job."""
    every = sorted(x for runs_ms in happened.runs_ms.values() for x in runs_ms)

    def draw(row: JobRow) -> int:
        runs_ms = happened.runs_ms.get(_kind_of(row)) or every or [RUN_MS]
        name = f"{seed}/{row.queue}/{row.tenant}/{row.enqueued_ms}/{row.ready_ms}"
        digest = blake2b(name.encode(), digest_size=8).digest()
        return runs_ms[int.from_bytes(digest) % len(runs_ms)]

    return draw


class _Look:
    """Notes taken while the jobs pass by."""

    def __init__(self, recording: Recording) -> None:
        self._span = recording.span
        self._recording = recording
        self._free = _free_queues(recording)
        self._runs: list[Run] = []
        self._waits: list[Waited] = []
        self._run_ms: defaultdict[str, list[int]] = defaultdict(list)
        self._starts: list[tuple[int, int, tuple[str, int, str, int]]] = []
        self._left: list[tuple[int, tuple[str, int, str, int]]] = []
        self._busy_ms = 0
        self._jobs = 0
        self._slo_max_ms = 0

    def over(self, rows: Iterable[JobRow]) -> Happened:
        for row in rows:
            self._jobs += 1
            self._slo_max_ms = max(self._slo_max_ms, row.slo_ms)
            self._note(row)
        span = self._span
        found = estimate(
            self._runs,
            self._unhindered(),
            span.begin_ms,
            min(span.until_ms, span.known_ms),
        )
        workers = _after_epoch(found.workers, span) or (Workers(slots=1),)
        return Happened(
            result=self._result(workers),
            workers=workers,
            gap_ms=found.gap_ms,
            cuts_ms=found.cuts_ms,
            runs_ms={name: _spaced(runs) for name, runs in self._run_ms.items()},
            busy_ms=self._busy_ms,
            slo_max_ms=self._slo_max_ms,
        )

    def _note(self, row: JobRow) -> None:
        span = self._span
        key = (row.queue, row.slo_ms, row.tenant, 0)
        for attempt in row.attempts:
            ready_ms = attempt.ready_ms
            if ready_ms is not None and span.judges(ready_ms):
                self._starts.append((attempt.started_ms, attempt.wait_ms or 0, key))
            since_ms = attempt.started_ms - (attempt.wait_ms or 0)
            ended_ms = attempt.ended_ms
            if ended_ms is None:
                ended_ms = max(span.known_ms, attempt.started_ms)
            else:
                own = self._run_ms[_kind_of(row)]
                own.append(ended_ms - attempt.started_ms)
            worker = attempt.worker or ""
            is_held_up = row.queue not in self._free
            self._runs.append(
                Run(
                    attempt.started_ms,
                    ended_ms,
                    since_ms,
                    worker,
                    row.queue,
                    attempt.token,
                    is_held_up,
                )
            )
            self._waits.append(Waited(since_ms, attempt.started_ms, row.queue))
            inside_ms = min(ended_ms, span.to_ms) - max(
                attempt.started_ms, span.from_ms
            )
            self._busy_ms += max(0, inside_ms)
        if not row.attempts:
            over_ms = span.known_ms if row.ended_ms is None else row.ended_ms
            self._waits.append(Waited(row.ready_ms, over_ms, row.queue))
            if row.ended_ms is None and span.judges(row.ready_ms):
                self._left.append((over_ms - row.ready_ms, key))

    def _unhindered(self) -> list[Waited]:
        """Waits that say that a slot was missing: those of queues without limits.

        Where every queue has some, all of them have to do.
        """
        found = [wait for wait in self._waits if wait.queue in self._free]
        return found or self._waits

    def _result(self, workers: tuple[Workers, ...]) -> Result:
        """By the same accounts as those of a run."""
        recording = self._recording
        scenario = recording.scenario(workers, recording.configs().values())
        measure = Measure(scenario)
        for started_ms, wait_ms, key in sorted(self._starts):
            measure.started(key, started_ms, wait_ms)
        for wait_ms, key in self._left:
            measure.never_started(key, wait_ms)
        ending = Ending(
            policy="recorded",
            seed=0,
            digest="",
            ended_ms=max([self._span.until_ms, *(one[0] for one in self._starts)]),
            simulated_jobs=self._jobs,
            simulated_jobs_per_second=0.0,
            limits={},
            outcomes=Outcomes(),
        )
        return measure.result(ending)


def _free_queues(recording: Recording) -> set[str]:
    """Queues whose jobs wait for nothing but a slot."""
    limited = {row.queue for row in recording.rules if _has_limits(row)}
    return {name for name in recording.queues if name not in limited}


def _has_limits(row: RuleRow) -> bool:
    """A rule that held at some time may hold jobs up: a limit, a window, a cap."""
    kind, _ = row.fact
    if row.rule is None:
        return False
    if kind != "queue":
        return '"cap":' in row.rule
    config = msgspec.json.decode(row.rule, type=QueueFact).config
    return bool(config.limits or config.windows) or config.slot_share < 1.0


def _after_epoch(workers: tuple[Workers, ...], span: Span) -> tuple[Workers, ...]:
    head_ms = span.begin_ms - span.epoch_ms
    return tuple(
        msgspec.structs.replace(
            one,
            at_ms=max(0, one.at_ms + head_ms),
            until_ms=None if one.until_ms is None else one.until_ms + head_ms,
        )
        for one in workers
        if one.until_ms is None or one.until_ms > one.at_ms
    )


def _kind_of(row: JobRow) -> str:
    return f"{row.queue} {row.kind}"


def _spaced(runs_ms: list[int]) -> list[int]:
    runs_ms.sort()
    if len(runs_ms) <= SAMPLES:
        return runs_ms
    return [runs_ms[place * len(runs_ms) // SAMPLES] for place in range(SAMPLES)]
