"""What operators and users rule: configuration, holds, tenants, kinds, verdicts."""

from headway.core import defaults, events, intake, life
from headway.core.book import Book
from headway.core.commands import (
    Changed,
    Configure,
    Hold,
    Judge,
    SetHold,
    SetKind,
    SetTenant,
    Verdict,
)
from headway.core.errors import BadValue
from headway.core.gate import BLOCKED, PAUSED
from headway.core.job import JobError
from headway.core.lane import KIND
from headway.core.queue import Queue
from headway.core.states import JobState

_TENANT_PAUSED = 1


def configure(book: Book, command: Configure, now_ms: int) -> Changed:
    """Makes a queue, or changes its rules; what stands in it follows the new ones."""
    config = command.config
    queue = book.queues.get(config.name)
    if queue is None:
        book.add_queue(config)
    else:
        old = queue.rules.gauges
        queue.rules.apply(config, now_ms)
        queue.declare_lanes()
        _recount(book, queue, now_ms)
        if (
            queue.gate.parked_on in old
            and queue.gate.parked_on not in queue.rules.gauges
        ):
            queue.gate.parked_on = None
        queue.gate.unpark(now_ms)
    _note(book, config.name, "configure", now_ms)
    return Changed(1)


def set_hold(book: Book, command: SetHold, now_ms: int) -> Changed:
    """Pause and block are two flags; repeating either changes nothing."""
    queue = book.queue(command.queue)
    reason = PAUSED if command.hold is Hold.PAUSE else BLOCKED
    if bool(queue.gate.holds & reason) == command.is_on:
        return Changed(0)
    queue.gate.hold(reason, now_ms, is_on=command.is_on)
    verb = {Hold.PAUSE: ("resume", "pause"), Hold.BLOCK: ("unblock", "block")}
    _note(book, queue.name, verb[command.hold][command.is_on], now_ms)
    return Changed(1)


def set_tenant(book: Book, command: SetTenant, now_ms: int) -> Changed:
    """Takes hold at once, for every job of the tenant that has not started."""
    queue = book.queue(command.queue)
    _check_cap(command.cap)
    weight = command.weight
    if weight is not None:
        if not defaults.WEIGHT_MIN <= weight <= defaults.WEIGHT_MAX:
            raise BadValue("weight", weight, "must be from 0.001 to 1000")
        intake.set_weight(book, queue, command.tenant, weight, now_ms)
    if command.is_paused is not None:
        rule = queue.own_rule(command.tenant)
        if bool(rule.holds) != command.is_paused:
            outer_ms = queue.gate.time(now_ms)
            rule.set_hold(_TENANT_PAUSED, outer_ms, is_on=command.is_paused)
            parked, rule.parked = rule.parked, []
            for turn in parked:
                turn.unpark(now_ms)
    if command.cap is not None:
        rule = queue.own_rule(command.tenant)
        old = rule.gauges
        rule.cap = None if command.cap < 0 else command.cap
        queue.rules.regauge(rule)
        _recount(book, queue, now_ms)
        for gauge in old:
            if gauge not in rule.gauges:
                gauge.wake_all(now_ms)
            else:
                gauge.wake(now_ms)
    _note(book, queue.name, f"tenant {command.tenant}", now_ms)
    return Changed(1)


def set_kind(book: Book, command: SetKind, now_ms: int) -> Changed:
    """Takes hold at once; jobs stored under other rules move when at the head."""
    queue = book.queue(command.queue)
    _check_cap(command.cap)
    rule = queue.rules.kind(command.kind)
    if command.cost is not None:
        if not 0 <= command.cost <= defaults.COUNT_MAX:
            raise BadValue("cost", command.cost, "must not be negative")
        rule.cost = command.cost
    if command.is_paused is not None:
        rule.is_paused = command.is_paused
    if command.cap is not None:
        rule.cap = None if command.cap < 0 else command.cap
    if command.cap is not None or (rule.is_paused and "kind" not in queue.rules.dims):
        queue.rules.reshape()
        _recount(book, queue, now_ms)
    if command.is_paused is not None:
        for lane in queue.all_lanes():
            for strand in lane.strands.values():
                if strand.kind == command.kind:
                    strand.hold(KIND, now_ms, is_on=rule.is_paused)
    _note(book, queue.name, f"kind {command.kind}", now_ms)
    return Changed(1)


def judge(book: Book, command: Judge, now_ms: int) -> Changed:
    """What the queue's throttler answered; a job that moved on since is left alone."""
    job = book.jobs.get(command.seq)
    if job is None or job.state is not JobState.READY:
        return Changed(0)
    queue = book.queues[job.queue]
    match command.verdict:
        case Verdict.START:
            job.is_cleared = True
            book.dispatch.verdict(job, now_ms)
        case Verdict.LATER:
            if command.at_ms > defaults.TIME_MAX_MS:
                raise BadValue("at_ms", command.at_ms, "must be before the year 10000")
            book.dispatch.remove(queue, job, now_ms)
            job.run_at_ms = max(command.at_ms, now_ms + 1)
            book.write(job, events.Rescheduled(now_ms, *life.whose(job), job.run_at_ms))
            life.make_scheduled(book, queue, job, now_ms)
        case Verdict.REFUSE:
            error = JobError(now_ms, job.attempt, "refused", command.text)
            life.keep_error(job, error)
            life.detach(book, job, now_ms)
            life.bury(book, job, error, now_ms)
    return Changed(1)


def _recount(book: Book, queue: Queue, now_ms: int) -> None:
    """Jobs under way count against limits that are new to them, too."""
    for job in book.jobs.values():
        if job.queue != queue.name or job.spec.is_critical:
            continue
        if job.state is JobState.LEASED or job.state is JobState.WAITING:
            held = {gauge for gauge, _ in job.holds}
            more = tuple(
                (gauge, gauge.take(job.cost, now_ms))
                for gauge in queue.gauges_of(job)
                if gauge not in held
            )
            job.holds += more


def _check_cap(cap: int | None) -> None:
    if cap is not None and not -1 <= cap <= defaults.COUNT_MAX:
        raise BadValue("cap", cap, "must be a number of units, or -1 for none")


def _note(book: Book, queue: str, what: str, now_ms: int) -> None:
    book.decision.events.append(events.RuleChanged(now_ms, queue, what))
