"""Random histories of a partition, checked at every step by models kept apart from it.

A story is a list of (verb, number, number): verbs find what they apply to by number, so
that every list is a story and a shorter list is one, too.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from headway.core import events
from headway.core.book import Book
from headway.core.commands import (
    Ack,
    Cancel,
    Command,
    Configure,
    Decision,
    DropSchedule,
    Enqueue,
    Extend,
    Granted,
    Hold,
    Judge,
    Lease,
    Nack,
    Purge,
    PutSchedule,
    Redrive,
    Release,
    Reply,
    SetHold,
    SetKind,
    SetTenant,
    Settled,
    Tick,
    Wait,
)
from headway.core.errors import LeaseLost, RuleBroken
from headway.core.job import Job
from headway.core.partition import Partition
from headway.core.spec import JobSpec
from headway.core.states import JobState
from tests.core.fuzz_rules import (
    KINDS,
    MINUTES,
    QUEUES,
    TENANTS,
    Draw,
    config_of,
    limit_of,
    schedule_of,
    spec_of,
    verdict_of,
)
from tests.core.history_model import HistoryModel
from tests.core.machine import START_MS
from tests.core.recount import check_counters
from tests.core.rule_model import RuleModel, may_start

Step = tuple[str, int, int]
JUMPS_MS = (1, 10, 100, 1_000, 5_000, 61_000, 600_000, 7_200_000, 90_000_000)
KEYS = ("k1", "k2", "k3")
RULING = (Configure, SetHold, SetTenant, SetKind)


class Fuzz:
    """A partition, the models beside it, and the verbs of a story."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self.partition = self.make_partition(START_MS)
        self.book: Book = self.partition.book
        self.history = HistoryModel()
        self.rules = RuleModel(self.book)
        self.tokens: list[int] = []
        """All that were ever handed out."""
        self.asked: list[Job] = []
        self.digest = blake2b(digest_size=16)
        self._bases: dict[object, int] = {}
        for name in QUEUES:
            self.send(Configure(config_of(name, 0)))

    def make_partition(self, now_ms: int) -> Any:
        """The partition that is played with, or what stands in for one."""
        return Partition()

    def all_jobs(self) -> dict[int, Job]:
        """Every open or dead job, wherever it is."""
        return dict(self.book.jobs.items())

    def play(self, story: Sequence[Step]) -> None:
        for verb, one, two in story:
            VERBS[verb](self, one, two)

    def send(self, *commands: Command) -> Decision:
        """Decides the commands at this moment and checks all that must hold after."""
        is_first = not self.history.waiting
        self.history.expect(list(commands))
        decision: Decision = self.partition.decide(commands, self.now_ms)
        self.digest.update(msgspec.msgpack.encode(decision.events))
        for command, answer in decision.answers:
            if isinstance(command, RULING) and not isinstance(answer, RuleBroken):
                self.rules.told(command)
        self._check_starts(decision)
        self.rules.follow(decision)
        self.history.follow(decision, self.now_ms)
        self.asked += decision.asks
        next_ms = self.partition.next_ms()
        if next_ms is not None and next_ms <= self.now_ms:
            # There was more to settle than one decision takes on.
            self.send()
        else:
            self._check_after(_unserved(commands, decision) if is_first else [])
        return decision

    def alone(self, command: Command) -> None:
        """One command that may be stale: then nothing at all may change."""
        self.send(Tick())
        tokens = set(_tokens_of(command))
        is_stale = bool(tokens) and tokens.isdisjoint(self.book.leases)
        decision = self.send(command)
        if is_stale:
            assert decision.events == [], "invariant 9"
            assert decision.jobs == [], "invariant 9"
            for asked, answer in decision.answers:
                assert asked is command
                assert isinstance(answer, LeaseLost | Settled), "invariant 9"

    def pass_ms(self, by_ms: int) -> None:
        """Time passes, with a decision wherever the partition asks for one."""
        end_ms = self.now_ms + by_ms
        for _ in range(200):
            next_ms = self.partition.next_ms()
            if next_ms is None or next_ms >= end_ms:
                break
            self._move_to(max(next_ms, self.now_ms + 1))
        self._move_to(end_ms)

    def _move_to(self, now_ms: int) -> None:
        jobs = self.all_jobs()
        for seq, record in self.history.records.items():
            if record.state is JobState.READY:
                job = jobs[seq]
                queue = self.rules.queues[job.queue]
                record.is_lazy |= queue.is_lazy(job)
                if queue.is_held(job):
                    record.held_ms += now_ms - self.now_ms
        self.now_ms = now_ms
        self.send(Tick())

    def _check_starts(self, decision: Decision) -> None:
        for event in decision.events:
            if isinstance(event, events.Leased):
                self.tokens.append(event.token)

    def _check_after(self, unserved: list[Lease]) -> None:
        self.check_counters()
        for queue in self.book.queues.values():
            for lane in queue.all_lanes():
                assert lane.base >= self._bases.get(lane, 0), "invariant 13"
                self._bases[lane] = lane.base
        callers = (*self.history.waiting, *unserved)
        served = {name for caller in callers for name in caller.queues or QUEUES}
        if served:
            jobs = self.all_jobs()
            for job in jobs.values():
                if job.state is JobState.READY and job.queue in served:
                    assert not may_start(self.rules, job, jobs, self.now_ms), job

    def check_counters(self) -> None:
        check_counters(self.book)


def _unserved(commands: Sequence[Command], decision: Decision) -> list[Lease]:
    """Callers who left with less than they asked for."""
    return [
        command
        for command, answer in decision.answers
        if isinstance(command, Lease)
        and command in commands
        and isinstance(answer, Granted)
        and len(answer.jobs) < command.max
    ]


def _tokens_of(command: Command) -> list[int]:
    match command:
        case Ack(tokens=tokens) | Release(tokens=tokens) | Extend(tokens=tokens):
            return tokens
        case Nack(token=token) | Wait(token=token):
            return [token]
        case _:
            return []


def _token(fuzz: Fuzz, number: int) -> int:
    """Mostly a live token, sometimes an old one or one that never was."""
    draw = Draw(number)
    live = list(fuzz.book.leases)
    if draw.chance(5) or not live:
        return fuzz.tokens[draw.pick(len(fuzz.tokens))] if fuzz.tokens else 999_999
    return live[draw.pick(len(live))]


def _seq(fuzz: Fuzz, number: int) -> int:
    seqs = list(fuzz.all_jobs()) or [1]
    return seqs[number % len(seqs)]


def _enqueue(fuzz: Fuzz, one: int, two: int) -> None:
    draw = Draw(one)
    name = QUEUES[draw.pick(4)]
    count = 1 + draw.pick(4)
    specs = [spec_of((two >> n) ^ (n * one), fuzz.now_ms) for n in range(count)]
    fuzz.send(Enqueue(name, specs))


def _lease(fuzz: Fuzz, one: int, two: int) -> None:
    draw = Draw(one)
    queues = (None, None, ("fair",), ("time", "priority"), ("fair", "plain"))
    wait_ms = (0, 1_000, 50_000)[draw.pick(3)]
    lease = Lease(
        "w",
        queues[draw.pick(5)],
        1 + draw.pick(4),
        (None, 1_500, 60_000)[draw.pick(3)],
        fuzz.now_ms + wait_ms if wait_ms else 0,
    )
    fuzz.send(lease)


def _ack(fuzz: Fuzz, one: int, two: int) -> None:
    fuzz.alone(Ack([_token(fuzz, one)]))


def _extend(fuzz: Fuzz, one: int, two: int) -> None:
    fuzz.alone(Extend([_token(fuzz, one)], 1 + two % 100_000))


def _nack(fuzz: Fuzz, one: int, two: int) -> None:
    draw = Draw(two)
    delay_ms = (None, 0, 700)[draw.pick(3)]
    payload = b"new" if draw.chance(4) else None
    how = (delay_ms, draw.chance(6), payload, draw.chance(5))
    fuzz.alone(Nack(_token(fuzz, one), "no", *how))


def _release(fuzz: Fuzz, one: int, two: int) -> None:
    fuzz.alone(Release([_token(fuzz, one)]))


def _wait(fuzz: Fuzz, one: int, two: int) -> None:
    draw = Draw(two)
    key, timeout_ms = KEYS[draw.pick(3)], (10_000, 500)[draw.pick(2)]
    fuzz.alone(Wait(_token(fuzz, one), key, timeout_ms, draw.chance(3)))


def _reply(fuzz: Fuzz, one: int, two: int) -> None:
    fuzz.send(Reply(QUEUES[one % 4], KEYS[two % 3], b"answer"))


def _cancel(fuzz: Fuzz, one: int, two: int) -> None:
    fuzz.send(Cancel(_seq(fuzz, one)))


def _redrive(fuzz: Fuzz, one: int, two: int) -> None:
    dead = [job for job in fuzz.all_jobs().values() if job.state is JobState.DEAD]
    seq = dead[one % len(dead)].seq if dead else _seq(fuzz, one)
    fuzz.send(Redrive(seq))


def _purge(fuzz: Fuzz, one: int, two: int) -> None:
    tenant = None if two % 5 == 4 else TENANTS[two % 4]
    fuzz.send(Purge(QUEUES[one % 4], tenant))


def _configure(fuzz: Fuzz, one: int, two: int) -> None:
    fuzz.send(Configure(config_of(QUEUES[one % 4], two)))


def _hold(fuzz: Fuzz, one: int, two: int) -> None:
    hold = (Hold.PAUSE, Hold.BLOCK)[one % 2]
    fuzz.send(SetHold(QUEUES[one // 2 % 4], hold, two % 3 == 0))


def _tenant(fuzz: Fuzz, one: int, two: int) -> None:
    draw = Draw(two)
    rule = SetTenant(QUEUES[one % 4], TENANTS[draw.pick(4)])
    match draw.pick(3):
        case 0:
            rule.weight = (1.0, 8.0)[draw.pick(2)]
        case 1:
            rule.is_paused = draw.chance(2)
        case _:
            rule.cap = (-1, 1, 0, 2)[draw.pick(4)]
    fuzz.send(rule)


def _kind(fuzz: Fuzz, one: int, two: int) -> None:
    draw = Draw(two)
    rule = SetKind(QUEUES[one % 4], KINDS[draw.pick(3)])
    match draw.pick(3):
        case 0:
            rule.cost = draw.pick(3)
        case 1:
            rule.is_paused = draw.chance(2)
        case _:
            rule.cap = (-1, 1, 0, 2)[draw.pick(4)]
    fuzz.send(rule)


def _judge(fuzz: Fuzz, one: int, two: int) -> None:
    asked, draw = fuzz.asked, Draw(two)
    is_asked = bool(asked) and not draw.chance(6)
    seq = asked[one % len(asked)].seq if is_asked else _seq(fuzz, one)
    verdict, at_ms = verdict_of(draw, fuzz.now_ms)
    if is_asked and at_ms:  # whoever is not answered asks again
        del asked[one % len(asked)]
    fuzz.send(Judge(seq, verdict, at_ms, "says so"))


def _schedule(fuzz: Fuzz, one: int, two: int) -> None:
    if one % 3 == 0:
        fuzz.send(DropSchedule("plain", ("one", "two")[two % 2]))
    else:
        fuzz.send(PutSchedule(schedule_of("plain", two)))


def _pass(fuzz: Fuzz, one: int, two: int) -> None:
    fuzz.pass_ms(JUMPS_MS[min(one % 16, two % 9)])


def _crowd(fuzz: Fuzz, one: int, two: int) -> None:
    """Plain jobs of few tenants, kinds and regions, so that they meet at limits."""
    draw = Draw(one)
    spec = JobSpec(
        tenant=("a", "b")[draw.pick(2)],
        kind=("x", "y")[draw.pick(2)],
        labels={"region": ("east", "north")[draw.pick(2)]},
        cost=3 if draw.chance(6) else 1,
        windows=MINUTES if draw.chance(8) else None,
    )
    fuzz.send(Enqueue("fair", [spec] * (1 + draw.pick(3))))


def _tighten(fuzz: Fuzz, one: int, two: int) -> None:
    """Nothing but one or two limits, so that nothing else can be the reason."""
    draw = Draw(one)
    limits = {limit.name: limit for limit in map(limit_of, [draw] * (1 + draw.pick(2)))}
    plain = config_of("fair", 0)
    fuzz.send(Configure(msgspec.structs.replace(plain, limits=tuple(limits.values()))))


def _squeeze(fuzz: Fuzz, one: int, two: int) -> None:
    """Stops, caps or frees one tenant or kind of the crowd."""
    draw = Draw(one)
    is_tenant = draw.chance(2)
    rule = SetTenant("fair", ("a", "b")[draw.pick(2)])
    other = SetKind("fair", ("x", "y")[draw.pick(2)])
    for part in (rule, other):
        if draw.chance(2):
            part.is_paused = draw.chance(2)
        else:
            part.cap = (-1, -1, 0, 1)[draw.pick(4)]
    fuzz.send(rule if is_tenant else other)


def _try(fuzz: Fuzz, one: int, two: int) -> None:
    """A worker that does not wait, and may leave with nothing."""
    fuzz.send(Lease("w", ("fair",), 1 + one % 2))


VERBS: dict[str, Callable[[Fuzz, int, int], None]] = {
    "enqueue": _enqueue,
    "lease": _lease,
    "ack": _ack,
    "extend": _extend,
    "nack": _nack,
    "release": _release,
    "wait": _wait,
    "reply": _reply,
    "cancel": _cancel,
    "redrive": _redrive,
    "purge": _purge,
    "configure": _configure,
    "hold": _hold,
    "tenant": _tenant,
    "kind": _kind,
    "judge": _judge,
    "schedule": _schedule,
    "pass": _pass,
    "crowd": _crowd,
    "tighten": _tighten,
    "squeeze": _squeeze,
    "try": _try,
}
