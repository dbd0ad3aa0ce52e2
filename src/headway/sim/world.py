"""The simulated world: arrivals, workers and time around the real core."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from heapq import heappop, heappush
from time import perf_counter
from typing import Any

import msgspec

from headway.core import events
from headway.core.commands import (
    Accepted,
    Ack,
    Answer,
    Command,
    Configure,
    Decision,
    Enqueue,
    Extend,
    Granted,
    Lease,
    Nack,
    Reply,
    Wait,
)
from headway.core.defaults import TIME_MAX_MS
from headway.core.errors import RuleBroken
from headway.core.job import Job
from headway.core.spec import JobSpec
from headway.sim.actions import command as action_command
from headway.sim.checkers import CheckFailed, LimitChecker
from headway.sim.measure import Ending, Measure
from headway.sim.policies import POLICIES, Policy
from headway.sim.result import Outcomes, Result
from headway.sim.scenario import Scenario, Workers
from headway.sim.workload import Arrival, arrivals

Happening = Callable[[list[Command]], None]
"""What comes about at its time: it adds the commands that it leads to."""
_encode = msgspec.msgpack.Encoder().encode


def run(
    scenario: Scenario,
    *,
    policy: str = "headway",
    seed: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Runs a scenario to its end and says what became of its promises."""
    seed = scenario.seed if seed is None else seed
    world = World(scenario, POLICIES[policy], seed)
    began = perf_counter()
    with seldom_collecting():
        world.run(progress)
    return world.result(perf_counter() - began)


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """A run makes millions of short-lived records and hardly a cycle."""
    thresholds = gc.get_threshold()
    # Measured: the collector's usual rhythm costs a tenth of a run.
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


class Fate(msgspec.Struct, eq=False):
    """What becomes of one job, drawn when it arrived."""

    arrival: Arrival
    key: tuple[str, int, str, int]
    fails: int
    is_started: bool = False
    has_replied: bool = False
    step: int = 0
    """Which of its recorded attempts is next."""
    run_ms: int = 0
    """Of the attempt under way."""


class World:
    """One run. Everything happens in virtual time, in one order."""

    def __init__(
        self,
        scenario: Scenario,
        policy: Policy,
        seed: int,
        coming: Iterator[Arrival] | None = None,
    ) -> None:
        """`coming` are jobs that take the place of those of the scenario's loads."""
        self.scenario = scenario
        self.policy = policy
        self.seed = seed
        self.partition = policy.partition()
        self.measure = Measure(scenario)
        configs = tuple(policy.configure(config) for config in scenario.queues)
        self.configs = {config.name: config for config in configs}
        self.limits = LimitChecker(configs)
        self.now_ms = scenario.epoch_ms
        self.jobs = 0
        self.refused = 0
        self.judged_ms = scenario.epoch_ms, scenario.epoch_ms + scenario.duration_ms
        self.busy_ms = 0
        """Of all slots, between these two moments."""
        self.outcomes = {"done": 0, "dead": 0, "cancelled": 0}
        self._digest = blake2b(digest_size=16)
        self._fates: dict[int, Fate] = {}
        self._agenda: list[tuple[int, int, Happening]] = []
        self._number = 0
        self._arrivals = arrivals(scenario, seed) if coming is None else coming
        self._next: Arrival | None = next(self._arrivals, None)
        self._enqueues: dict[Enqueue, list[Arrival]] = {}
        self._leavers: dict[Lease, int | None] = {}
        self._end_ms = scenario.epoch_ms + scenario.duration_ms + scenario.drain_ms
        self._decide([Configure(config) for config in configs])
        for group in scenario.workers:
            self._at(scenario.epoch_ms + group.at_ms, self._joins(group))
        for action in scenario.actions:
            self._at(scenario.epoch_ms + action.at_ms, self._acts(action))

    def run(self, progress: Callable[[float], None] | None) -> None:
        """Until everything that arrived has ended, or the time is up."""
        span_ms = max(1, self.scenario.duration_ms)
        steps = 0
        while True:
            at_ms = self._next_ms()
            if at_ms is None or at_ms > self._end_ms:
                break
            self.now_ms = max(self.now_ms, at_ms)
            commands = self._happen()
            self._arrive(commands)
            self._decide(commands)
            steps += 1
            if progress is not None and steps % 2_000 == 0:
                done = (self.now_ms - self.scenario.epoch_ms) / span_ms
                progress(min(1.0, done))
            if self._next is None and not self._fates:
                break

    def result(self, seconds: float) -> Result:
        """What the run came to; jobs that never started count as they stand."""
        for fate in self._fates.values():
            if not fate.is_started and self._is_judged(fate):
                waited = self.now_ms - fate.arrival.at_ms
                self.measure.never_started(fate.key, waited)
        ending = Ending(
            policy=self.policy.name,
            seed=self.seed,
            digest=self._digest.hexdigest(),
            ended_ms=self.now_ms,
            simulated_jobs=self.jobs,
            simulated_jobs_per_second=round(self.jobs / max(seconds, 1e-9)),
            limits=self.limits.uses(),
            outcomes=Outcomes(**self.outcomes, open=len(self._fates)),
        )
        return self.measure.result(ending)

    def ruled(self, at_ms: int, command: Command) -> None:
        """Something is to be said of a queue, a tenant or a kind at a time."""

        def happen(commands: list[Command]) -> None:
            if isinstance(command, Configure):
                self.configs[command.config.name] = command.config
                self.limits.reconfigured(command.config)
            commands.append(command)

        self._at(at_ms, happen)

    def _is_judged(self, fate: Fate) -> bool:
        return True

    def _next_ms(self) -> int | None:
        at_ms = self.partition.next_ms()
        if self._agenda and (at_ms is None or self._agenda[0][0] < at_ms):
            at_ms = self._agenda[0][0]
        arrival = self._next
        if arrival is not None and (at_ms is None or arrival.at_ms < at_ms):
            at_ms = arrival.at_ms
        return at_ms

    def _at(self, at_ms: int, happening: Happening) -> None:
        self._number += 1
        heappush(self._agenda, (at_ms, self._number, happening))

    def _happen(self) -> list[Command]:
        commands: list[Command] = []
        agenda = self._agenda
        now_ms = self.now_ms
        while agenda and agenda[0][0] <= now_ms:
            heappop(agenda)[2](commands)
        return commands

    def _arrive(self, commands: list[Command]) -> None:
        """Jobs that arrive in the same millisecond are enqueued together."""
        arrival = self._next
        now_ms = self.now_ms
        if arrival is None or arrival.at_ms > now_ms:
            return
        batches: dict[str, tuple[Enqueue, list[Arrival]]] = {}
        while arrival is not None and arrival.at_ms <= now_ms:
            batch = batches.get(arrival.queue)
            if batch is None:
                batch = batches[arrival.queue] = (Enqueue(arrival.queue, []), [])
            batch[0].specs.append(arrival.spec)
            batch[1].append(arrival)
            self.measure.arrived(arrival.at_ms, arrival.run_ms)
            arrival = next(self._arrivals, None)
        self._next = arrival
        for enqueue, arrived in batches.values():
            self._enqueues[enqueue] = arrived
            commands.append(enqueue)

    def _decide(self, commands: list[Command]) -> None:
        """Puts commands to the core until its answers ask for no more."""
        while True:
            decision = self.partition.decide(commands, self.now_ms)
            commands = []
            for command, answer in decision.answers:
                self._hear(command, answer, commands)
            self._watch(decision)
            if not commands:
                return

    def _hear(self, command: Command, answer: Answer, more: list[Command]) -> None:
        if isinstance(command, Lease):
            assert isinstance(answer, Granted)
            self._granted(command, answer.jobs, more)
        elif isinstance(command, Enqueue):
            batch = self._enqueues.pop(command)
            if isinstance(answer, Accepted):
                self._accepted(batch, answer.seqs)
            else:
                self.refused += len(batch)
        elif isinstance(answer, RuleBroken):
            name = type(command).__name__
            raise CheckFailed(f"{name} was refused: {answer}")

    def _accepted(self, batch: list[Arrival], seqs: list[int]) -> None:
        jobs = self.partition.book.jobs
        self.jobs += len(seqs)
        for arrival, seq in zip(batch, seqs, strict=True):
            spec = arrival.spec
            slo_ms = jobs[seq].slo_ms if seq in jobs else spec.slo_ms or 0
            key = (arrival.queue, slo_ms, spec.tenant, arrival.load)
            self._fates[seq] = Fate(arrival, key, arrival.fails)

    def _granted(self, lease: Lease, jobs: list[Job], commands: list[Command]) -> None:
        """A slot got its job, and works on it from now on."""
        until_ms = self._leavers.pop(lease)
        for job in jobs:
            fate = self._fates[job.seq]
            run_ms = fate.run_ms = self._run_ms(fate)
            self._busy(run_ms)
            if fate.arrival.hangs and job.attempt == 1:
                self._at(job.lease_until_ms, self._frees(lease, until_ms, None))
                continue
            if self.now_ms + run_ms >= job.lease_until_ms:
                # Stands for heartbeats: a live worker never loses its lease.
                commands.append(Extend([job.token], run_ms + 1_000))
            ending = self._ending(job, fate)
            self._at(self.now_ms + run_ms, self._frees(lease, until_ms, ending))

    def _run_ms(self, fate: Fate) -> int:
        """How long the attempt takes that begins now."""
        return fate.arrival.run_ms

    def _busy(self, run_ms: int) -> None:
        from_ms, to_ms = self.judged_ms
        end_ms = min(self.now_ms + run_ms, to_ms)
        self.busy_ms += max(0, end_ms - max(self.now_ms, from_ms))

    def _ending(self, job: Job, fate: Fate) -> Command:
        token = job.token
        arrival = fate.arrival
        if fate.fails > 0:
            fate.fails -= 1
            return Nack(token, "simulated failure")
        if arrival.reply_after_ms is None or fate.has_replied:
            return Ack([token])
        fate.has_replied = True
        key = f"{job.seq}"
        reply = Reply(arrival.queue, key, b"answer")
        if arrival.reply_after_ms >= 0:
            asked_ms = self.now_ms + arrival.run_ms
            early = arrival.is_reply_early
            at_ms = self.now_ms if early else asked_ms + arrival.reply_after_ms
            self._at(at_ms, lambda commands: commands.append(reply))
        return Wait(token, key, arrival.reply_timeout_ms)

    def _frees(
        self, lease: Lease, until_ms: int | None, ending: Command | None
    ) -> Happening:
        """The slot is free again, and leases anew if its fleet is still there."""

        def happen(commands: list[Command]) -> None:
            if ending is not None:
                commands.append(ending)
            if until_ms is None or self.now_ms < until_ms:
                commands.append(self._lease(lease.queues, until_ms))

        return happen

    def _lease(self, queues: tuple[str, ...] | None, until_ms: int | None) -> Lease:
        wait_ms = TIME_MAX_MS if until_ms is None else until_ms
        lease = Lease("", queues, 1, None, wait_ms)
        self._leavers[lease] = until_ms
        return lease

    def _joins(self, group: Workers) -> Happening:
        epoch_ms = self.scenario.epoch_ms
        until_ms = None if group.until_ms is None else epoch_ms + group.until_ms

        def happen(commands: list[Command]) -> None:
            slots = range(group.slots)
            commands.extend(self._lease(group.queues, until_ms) for _ in slots)

        return happen

    def _acts(self, action: Any) -> Happening:
        def happen(commands: list[Command]) -> None:
            command = action_command(action, self.configs[action.queue])
            if isinstance(command, Configure):
                self.configs[action.queue] = command.config
                self.limits.reconfigured(command.config)
            commands.append(command)

        return happen

    def _watch(self, decision: Decision) -> None:
        """Every event is digested, checked and measured."""
        if not decision.events:
            return
        self._digest.update(_encode(decision.events))
        for event in decision.events:
            kind = type(event)
            if kind is events.Leased:
                self._started(event)  # type: ignore[arg-type]
            elif kind is events.Acked:
                self._ended(event, "done")
            elif kind in _RUN_ENDS:
                self.limits.ended(event.seq)  # type: ignore[attr-defined]
            elif kind in _ENDS:
                self._ended(event, _ENDS[kind])
            elif kind is events.Replied and event.is_done:  # type: ignore[attr-defined]
                self._ended(event, "done")

    def _started(self, event: events.Leased) -> None:
        fate = self._fates[event.seq]
        if event.wait_ms < 0:
            raise CheckFailed(f"job {event.seq} started before its time")
        if not fate.is_started:
            fate.is_started = True
            self.measure.started(fate.key, event.at_ms, event.wait_ms)
        spec: JobSpec = fate.arrival.spec
        self.limits.started(event.seq, event.queue, spec, event.at_ms)
        self.measure.ran(fate.key, fate.run_ms)

    def _ended(self, event: Any, outcome: str) -> None:
        self.limits.ended(event.seq)
        self.outcomes[outcome] += 1
        del self._fates[event.seq]


_RUN_ENDS = frozenset({events.Retried, events.Released, events.Lost})
_ENDS: dict[type, str] = {
    events.Buried: "dead",
    events.Expired: "dead",
    events.Cancelled: "cancelled",
}
