"""Runs one point of a grid: recorded jobs, or those of a scenario, in the real core."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, cast

import msgspec

from headway.core import events
from headway.core.commands import (
    Ack,
    Cancel,
    Command,
    Extend,
    Lease,
    Nack,
    Release,
    Reply,
    Wait,
)
from headway.core.defaults import DURATION_MAX_MS
from headway.core.job import Job
from headway.core.states import JobState
from headway.sim import workload
from headway.sim.plan import recorded, rules
from headway.sim.plan.change import (
    AS_IT_IS,
    Change,
    alteration,
    altered,
    changed,
    first_rulings,
)
from headway.sim.plan.outcome import Outcome, lanes_of, sufferers_of
from headway.sim.plan.recorded import End, JobRow, Recorded, Span
from headway.sim.plan.recording import Happened, Recording, run_draw
from headway.sim.policies import POLICIES
from headway.sim.scenario import Scenario, Workers
from headway.sim.workload import Arrival
from headway.sim.world import Fate, Happening, World, seldom_collecting

SUFFERERS: Final = 5
_IDLE: Final = frozenset({JobState.READY, JobState.SCHEDULED, JobState.WAITING})


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One point of a grid."""

    change: Change = AS_IT_IS
    workers: int | None = None
    """None means: those that really served."""
    seed: int = 1
    target: float = 0.99


def replay(recording: Recording, rows: Iterable[JobRow], point: Point) -> Outcome:
    """The recorded jobs, in the order of their enqueue, under the point's rules."""
    happened = recording.happened
    assert happened is not None
    span, change = recording.span, point.change
    configs = [changed(one, change) for one in recording.configs().values()]
    workers = resized(happened.workers, point.workers, span.begin_ms - span.epoch_ms)
    coming = recorded.arrivals(rows, span, run_draw(happened, point.seed))
    world = ReplayWorld(
        recording.scenario(workers, configs),
        cast("Iterator[Recorded]", map(alteration(change), coming)),
        span,
        happened,
        point.seed,
    )
    told = rules.commands(
        recording.rules, recording.queues, span.begin_ms, span.epoch_ms
    )
    for timed in told:
        world.ruled(timed.at_ms, altered(timed.command, change))
    for command in first_rulings(change, recording.queues):
        world.ruled(span.epoch_ms, command)
    return _run(world, point)


def simulate(scenario: Scenario, point: Point) -> Outcome:
    """The jobs of a scenario, under the point's rules."""
    change = point.change
    scenario = msgspec.structs.replace(
        scenario,
        queues=tuple(changed(config, change) for config in scenario.queues),
        workers=resized(scenario.workers, point.workers, 0),
    )
    coming = map(alteration(change), workload.arrivals(scenario, point.seed))
    world = World(scenario, POLICIES["headway"], point.seed, coming)
    for command in first_rulings(change, [one.name for one in scenario.queues]):
        world.ruled(scenario.epoch_ms, command)
    return _run(world, point)


def resized(
    workers: tuple[Workers, ...], slots: int | None, at_ms: int
) -> tuple[Workers, ...]:
    """So many slots from a moment on, between sets of queues as they were before.

    Those that had a job at that moment have it again.
    """
    if slots is None:
        return workers
    served: dict[tuple[str, ...] | None, int] = {}
    for one in workers:
        served[one.queues] = served.get(one.queues, 0) + one.slots
    total = sum(served.values())
    exact = {queues: slots * count / total for queues, count in served.items()}
    given = {queues: max(1, int(part)) for queues, part in exact.items()}
    early: dict[tuple[str, ...] | None, list[int]] = {}
    for one in workers:
        if one.at_ms < at_ms:
            early.setdefault(one.queues, []).extend([one.at_ms] * one.slots)
    # What rounding left over goes to those from whom it took most.
    for queues in sorted(exact, key=lambda one: given[one] - exact[one]):
        if sum(given.values()) < slots:
            given[queues] += 1
    return tuple(
        Workers(slots=joined, at_ms=joined_ms, queues=queues)
        for queues, count in given.items()
        for joined_ms, joined in _joins(early.get(queues, []), count, at_ms)
    )


def _joins(early: list[int], slots: int, at_ms: int) -> list[tuple[int, int]]:
    """When so many slots join: some with the jobs that ran already, the rest later."""
    times = [*sorted(early)[:slots], *[at_ms] * (slots - len(early))]
    return sorted(Counter(times).items())


def slot_ms(workers: Iterable[Workers], from_ms: int, to_ms: int) -> int:
    """Time of all slots together between two moments after the start."""
    total_ms = 0
    for one in workers:
        end_ms = to_ms if one.until_ms is None else min(one.until_ms, to_ms)
        total_ms += one.slots * max(0, end_ms - max(one.at_ms, from_ms))
    return total_ms


def _run(world: World, point: Point) -> Outcome:
    with seldom_collecting():
        world.run(None)
    result = world.result(1.0)
    epoch_ms = world.scenario.epoch_ms
    from_ms, to_ms = (at_ms - epoch_ms for at_ms in world.judged_ms)
    there_ms = slot_ms(world.scenario.workers, from_ms, to_ms)
    sufferers = sufferers_of(result, point.target)
    return Outcome(
        name=point.change.name,
        workers=point.workers,
        seed=point.seed,
        lanes=lanes_of(result),
        sufferers=sufferers[:SUFFERERS],
        sufferers_count=len(sufferers),
        utilisation=round(world.busy_ms / max(1, there_ms), 4),
        slots=round(there_ms / max(1, to_ms - from_ms), 2),
        unstarted=sum(lane.unstarted for lane in result.lanes.values()),
        refused=world.refused,
        digest=result.digest,
    )


class ReplayWorld(World):
    """The world with recorded jobs: each attempt runs and ends as it really did."""

    def __init__(
        self,
        scenario: Scenario,
        coming: Iterator[Recorded],
        span: Span,
        happened: Happened,
        seed: int,
    ) -> None:
        self._span = span
        self._gap_ms = happened.gap_ms
        self._cuts_ms = happened.cuts_ms
        self._late_ms = 0
        """How much later the end that comes next is heard of than its slot is free."""
        super().__init__(scenario, POLICIES["headway"], seed, coming)
        self.judged_ms = span.from_ms, span.to_ms

    def _accepted(self, batch: list[Arrival], seqs: list[int]) -> None:
        super()._accepted(batch, seqs)
        for arrival, seq in zip(batch, seqs, strict=True):
            withdrawn_ms = cast(Recorded, arrival).withdrawn_ms
            if withdrawn_ms is not None:
                self._at(withdrawn_ms, self._withdraws(seq))

    def _withdraws(self, seq: int) -> Happening:
        def happen(commands: list[Command]) -> None:
            job = self.partition.book.jobs.get(seq)
            if job is not None and job.state in _IDLE:
                commands.append(Cancel(seq))

        return happen

    def _run_ms(self, fate: Fate) -> int:
        """How long the slot is held."""
        steps = cast(Recorded, fate.arrival).steps
        step = steps[min(fate.step, len(steps) - 1)]
        fate.step += 1
        return min(step.run_ms, self._cuts_ms.get(step.token, step.run_ms))

    def _ending(self, job: Job, fate: Fate) -> Command:
        steps = cast(Recorded, fate.arrival).steps
        step = steps[min(fate.step, len(steps)) - 1]
        over_ms = self.now_ms + step.run_ms
        self._late_ms = step.run_ms - fate.run_ms
        if self._late_ms:
            extend = Extend([job.token], step.run_ms + 1_000)
            self._at(self.now_ms, lambda commands: commands.append(extend))
        match step.end:
            case End.RETRY:
                return Nack(job.token, retry_in_ms=step.after_ms)
            case End.BURY:
                return Nack(job.token, is_bury=True)
            case End.RELEASE:
                return Release([job.token])
            case End.CANCEL:
                cancel = Cancel(job.seq)
                self._at(over_ms, lambda commands: commands.append(cancel))
                return Release([job.token])
            case End.WAIT | End.LAST_WAIT:
                key = f"{job.seq}.{fate.step}"
                reply = Reply(fate.arrival.queue, key)
                reply_ms = over_ms + (step.after_ms or 0)
                self._at(reply_ms, self._replies(job.seq, reply))
                is_last = step.end is End.LAST_WAIT
                return Wait(job.token, key, DURATION_MAX_MS, is_done_on_reply=is_last)
            case End.ACK:
                return Ack([job.token])

    def _replies(self, seq: int, reply: Reply) -> Happening:
        def happen(commands: list[Command]) -> None:
            if seq in self._fates:  # else it was withdrawn while it waited
                commands.append(reply)

        return happen

    def _frees(
        self, lease: Lease, until_ms: int | None, ending: Command | None
    ) -> Happening:
        """The slot leases anew once it has told of the end and asked again."""
        late_ms, self._late_ms = self._late_ms, 0

        def happen(commands: list[Command]) -> None:
            if ending is not None and late_ms:
                self._at(self.now_ms + late_ms, lambda later: later.append(ending))
            elif ending is not None:
                commands.append(ending)
            if self._gap_ms:
                self._at(self.now_ms + self._gap_ms, lease_anew)
            else:
                lease_anew(commands)

        def lease_anew(commands: list[Command]) -> None:
            if until_ms is None or self.now_ms < until_ms:
                commands.append(self._lease(lease.queues, until_ms))

        return happen

    def _started(self, event: events.Leased) -> None:
        """Every wait is a promise of its own: also that for a further attempt."""
        fate = self._fates[event.seq]
        fate.is_started = True
        arrival = cast(Recorded, fate.arrival)
        ready_ms = event.at_ms - event.wait_ms - event.held_ms
        is_judged = not event.is_again and arrival.is_judged
        if is_judged and self._span.judges(ready_ms):
            self.measure.started(fate.key, event.at_ms, event.wait_ms)
        self.limits.started(event.seq, event.queue, arrival.spec, event.at_ms)
        self.measure.ran(fate.key, fate.run_ms)

    def _is_judged(self, fate: Fate) -> bool:
        arrival = cast(Recorded, fate.arrival)
        ready_ms = arrival.spec.run_at_ms or arrival.at_ms
        return arrival.is_judged and self._span.judges(ready_ms)
