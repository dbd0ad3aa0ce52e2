"""What operators and users rule: configuration, holds, tenants, kinds, verdicts."""

from typing import Final

from headway.core import defaults, events, facts, intake, life
from headway.core.book import Book
from headway.core.commands import (
    Changed,
    Configure,
    Fact,
    FactKind,
    Hold,
    Judge,
    SetHold,
    SetKind,
    SetTenant,
    Verdict,
)
from headway.core.config import FailMode
from headway.core.errors import BadValue, TooManyQueues
from headway.core.fairness import TenantRule
from headway.core.gate import BLOCKED, PAUSED
from headway.core.job import Job
from headway.core.limits import Gauge
from headway.core.queue import Queue, ask_no_more
from headway.core.spec import JobError
from headway.core.states import JobState
from headway.core.strand import KIND, TENANT, Strand

UNHEARD: Final = "no verdict"
"""The reason of the error of a job that is put off because its throttler failed."""
_TENANT_PAUSED = 1


def configure(book: Book, command: Configure, now_ms: int) -> Changed:
    """Makes a queue, or changes its rules; what stands in it follows the new ones."""
    config = command.config
    queue = book.queues.get(config.name)
    if queue is None:
        if len(book.queues) >= defaults.QUEUES_MAX:
            raise TooManyQueues(f"there are {defaults.QUEUES_MAX} queues already")
        book.add_queue(config)
    elif command.is_new_only:
        return Changed(0)
    else:
        shape = queue.rules.shape
        was_fair = queue.rules.is_fair
        queue.rules.apply(config, now_ms)
        queue.declare_lanes()
        _renew_tenancies(queue, was_fair=was_fair)
        _reshaped(book, queue, now_ms)
        if queue.rules.shape != shape:
            for rule in queue.rules.tenants.values():
                _unpark(rule, now_ms)
        if not config.has_throttler:
            asked, queue.asked = queue.asked, {}
            queue.unheard = {}
            for job in asked.values():
                book.dispatch.parking.verdict(job, now_ms)
        gauges = (*queue.rules.gauges, queue.slot_gauge)
        if queue.gate.parked_on not in gauges or config.slot_share == 1.0:
            queue.gate.leave(now_ms)
        queue.reseat()
    _note(book, FactKind.QUEUE, config.name, "configure", now_ms)
    return Changed(1)


def set_hold(book: Book, command: SetHold, now_ms: int) -> Changed:
    """Pause and block are two flags; repeating either changes nothing."""
    queue = book.queue(command.queue)
    reason = PAUSED if command.hold is Hold.PAUSE else BLOCKED
    if bool(queue.gate.holds & reason) == command.is_on:
        return Changed(0)
    queue.gate.hold(reason, now_ms, is_on=command.is_on)
    verb = {Hold.PAUSE: ("resume", "pause"), Hold.BLOCK: ("unblock", "block")}
    _note(book, FactKind.QUEUE, queue.name, verb[command.hold][command.is_on], now_ms)
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
        _pause_tenant(queue, command.tenant, now_ms, is_on=command.is_paused)
    if command.cap is not None:
        _cap_tenant(queue, command.tenant, command.cap, now_ms)
    if not queue.rules.is_fair:
        queue.rules.reshape()
        for strand in _strands(queue):
            if strand.tenant == command.tenant and command.is_paused is not None:
                strand.hold(TENANT, now_ms, is_on=command.is_paused)
    _reshaped(book, queue, now_ms)
    _note(book, FactKind.TENANT, queue.name, command.tenant, now_ms)
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
    queue.rules.reshape()
    if command.cap is not None:
        if rule.cap is None:
            queue.rules.book.uncap("kind", command.kind, now_ms)
        else:
            queue.rules.book.cap("kind", command.kind, rule.cap).wake(now_ms)
    if command.is_paused is not None:
        for strand in _strands(queue):
            if strand.kind == command.kind:
                strand.hold(KIND, now_ms, is_on=rule.is_paused)
    _reshaped(book, queue, now_ms)
    _note(book, FactKind.KIND, queue.name, command.kind, now_ms)
    return Changed(1)


def judge(book: Book, command: Judge, now_ms: int) -> Changed:
    """What the queue's throttler answered; a job that moved on since is left alone."""
    job = book.jobs.get(command.seq)
    if job is None or job.state is not JobState.READY:
        return Changed(0)
    if command.at_ms > defaults.TIME_MAX_MS:
        raise BadValue("at_ms", command.at_ms, "must be before the year 10000")
    queue = book.queues[job.queue]
    match command.verdict:
        case Verdict.START:
            _clear(book, queue, job, now_ms)
        case Verdict.LATER:
            _put_off(book, queue, job, command.at_ms, now_ms)
        case Verdict.REFUSE:
            error = JobError(now_ms, job.attempt, "refused", command.text)
            life.keep_error(job, error)
            life.detach(book, job, now_ms)
            life.bury(book, job, error, now_ms)
        case Verdict.FAILED:
            return _unheard(book, queue, job, command, now_ms)
    return Changed(1)


def _unheard(
    book: Book, queue: Queue, job: Job, command: Judge, now_ms: int
) -> Changed:
    """There is no verdict: what its queue has declared for that holds."""
    if queue.rules.config.throttler_fails is FailMode.OPEN:
        _clear(book, queue, job, now_ms)
    elif command.at_ms:
        error = JobError(now_ms, job.attempt, UNHEARD, command.text)
        life.keep_error(job, error)
        _put_off(book, queue, job, command.at_ms, now_ms)
    elif job.seq in queue.asked:
        # It stays where it is, and nothing is written: whoever asked asks again.
        queue.unheard[job.seq] = command.text
    else:
        return Changed(0)
    return Changed(1)


def _clear(book: Book, queue: Queue, job: Job, now_ms: int) -> None:
    """It may start as far as the throttler goes, and is not asked about for a while.

    Not for ever: what it was let start by may be long past, and units that it does not
    use because it is paused would be kept from everybody else.
    """
    ask_no_more(queue, job)
    job.cleared_ms = now_ms + defaults.VERDICT_MS
    book.dispatch.parking.verdict(job, now_ms)


def _put_off(book: Book, queue: Queue, job: Job, at_ms: int, now_ms: int) -> None:
    """It is scheduled, and asked about again when its time has come."""
    book.dispatch.remove(queue, job, now_ms)
    job.cleared_ms = 0
    _, unstarted_ms = life.told_end(job)
    job.run_at_ms = max(at_ms, now_ms + 1)
    job.started_ms = 0
    later = events.Rescheduled(now_ms, *life.whose(job), job.run_at_ms, unstarted_ms)
    book.write(job, later)
    life.make_scheduled(book, queue, job, now_ms)


def _pause_tenant(queue: Queue, tenant: str, now_ms: int, *, is_on: bool) -> None:
    rule = queue.own_rule(tenant)
    if bool(rule.holds) == is_on:
        return
    rule.set_hold(_TENANT_PAUSED, queue.gate.time(now_ms), is_on=is_on)
    _unpark(rule, now_ms)


def _unpark(rule: TenantRule, now_ms: int) -> None:
    """The tenant's turns look again whether they may go."""
    parked, rule.parked = rule.parked, None
    for turn in parked or ():
        if turn.parked_on is rule:
            turn.unpark(now_ms)


def _cap_tenant(queue: Queue, tenant: str, cap: int, now_ms: int) -> None:
    rule = queue.own_rule(tenant)
    rule.cap = None if cap < 0 else cap
    book = queue.rules.book
    if rule.cap is None:
        book.uncap("tenant", tenant, now_ms)
    else:
        book.cap("tenant", tenant, rule.cap).wake(now_ms)
    queue.rules.regauge(rule)


def _strands(queue: Queue) -> list[Strand]:
    return [s for lane in queue.all_lanes() for s in lane.strands.values()]


def _renew_tenancies(queue: Queue, *, was_fair: bool) -> None:
    """The configuration is new: tenants meet the rules that it makes for them."""
    rules = queue.rules
    for lane in queue.all_lanes():
        if rules.is_fair != was_fair:
            # Turns that stand keep their old clocks until they are sorted anew.
            for tenancy in lane.tenancies.values():
                tenancy.account.tenancies -= 1
            lane.tenancies = {}
        elif rules.is_fair:
            for name, tenancy in lane.tenancies.items():
                tenancy.rule = rules.rule_of(name)


def _free_old_strands(queue: Queue, now_ms: int) -> None:
    """Strands of older rules need only surface for their jobs to be sorted anew."""
    for strand in _strands(queue):
        if strand.shape != queue.rules.shape and strand.holds:
            strand.hold(strand.holds, now_ms, is_on=False)


def gauges_of(queue: Queue, job: Job) -> tuple[Gauge, ...]:
    """Every gauge on which a start of the job counts."""
    rules = queue.rules
    name = job.spec.tenant if rules.is_fair else ""
    key = rules.strand_key(job.spec)
    return (*rules.gauges, *rules.strand_gauges(key), *rules.rule_of(name).gauges)


def _reshaped(book: Book, queue: Queue, now_ms: int) -> None:
    """Jobs that stand or run under the old rules meet the new ones."""
    _free_old_strands(queue, now_ms)
    _recount(book, queue, now_ms)
    if queue.shape_met != queue.rules.shape:
        # What waits under the old rules may go under the new ones.
        queue.shape_met = queue.rules.shape
        if queue.shared.is_bounded:
            queue.shared.reshaped[queue] = None
        for gauge in queue.rules.book.all():
            gauge.wake_all(now_ms)


def _recount(book: Book, queue: Queue, now_ms: int) -> None:
    """Jobs under way count against limits that are new to them, too."""
    for job in book.jobs.values():
        if job.queue != queue.name or job.spec.is_critical:
            continue
        if job.holds or job.state in (JobState.LEASED, JobState.WAITING):
            held = {hold.gauge for hold in job.holds}
            more = [gauge for gauge in gauges_of(queue, job) if gauge not in held]
            book.shared.uses.take(tuple(more), job, now_ms)


def _check_cap(cap: int | None) -> None:
    if cap is not None and not -1 <= cap <= defaults.COUNT_MAX:
        raise BadValue("cap", cap, "must be a number of units, or -1 for none")


def _note(book: Book, kind: FactKind, queue: str, what: str, now_ms: int) -> None:
    """The rule changed: to be written, and told to history."""
    fact: Fact = kind, queue, ""
    if kind is FactKind.QUEUE:
        book.know(kind, queue)
    else:
        book.know(kind, queue, what)
        fact = kind, queue, what
        what = f"{kind} {what}"
    rule = facts.pack(book, fact) or b""
    book.decision.events.append(events.RuleChanged(now_ms, queue, what, rule))
