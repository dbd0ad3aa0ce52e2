"""Why is this job not running: what stops it, who stands before it, and until when."""

from enum import StrEnum

import msgspec

from headway.core.book import Book
from headway.core.delivery import Delivery, Limited, check
from headway.core.gate import BLOCKED, PAUSED
from headway.core.job import Job
from headway.core.limits import Gauge, RateGauge
from headway.core.rulings import UNHEARD
from headway.core.states import JobState
from headway.core.strand import KIND, WINDOW
from headway.core.turn import OVER, Turn, rows_of

HOLDERS: int = 10
"""How many of the jobs that hold a limit are named."""


class Rule(StrEnum):
    """What can keep a job from running."""

    STATE = "state"
    RUN_AT = "run_at"
    QUEUE_PAUSED = "queue_paused"
    QUEUE_BLOCKED = "queue_blocked"
    WINDOW = "window"
    KIND_PAUSED = "kind_paused"
    TENANT_PAUSED = "tenant_paused"
    LIMIT = "limit"
    THROTTLER = "throttler"
    OVER_SHARE = "over_share"
    BUSY = "busy"


class Reason(msgspec.Struct, frozen=True):
    """One thing that stops the job, in words and as data."""

    rule: Rule
    text: str
    until_ms: int | None = None
    """When it ends, where that is known."""
    holders: tuple[int, ...] = ()
    """Jobs that hold what it waits for."""


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """The answer: all reasons, the first of them the one to lift first."""

    seq: int
    state: JobState
    queue: str
    slo_ms: int
    tenant: str
    reasons: tuple[Reason, ...]
    ahead: int
    """Jobs of its lane that are to start before it, as things stand."""
    starts_ms: int | None
    """An estimate of its start; None where nothing can be said."""


def why(book: Book, seq: int, now_ms: int) -> Why:
    """Looks and changes nothing."""
    job = book.job(seq)
    reasons = _reasons(book, job, now_ms)
    ahead = _ahead(job) if job.turn is not None else 0
    return Why(
        seq=seq,
        state=job.state,
        queue=job.queue,
        slo_ms=job.slo_ms,
        tenant=job.spec.tenant,
        reasons=tuple(reasons),
        ahead=ahead,
        starts_ms=_starts_ms(job, reasons, ahead, now_ms),
    )


def _reasons(book: Book, job: Job, now_ms: int) -> list[Reason]:
    match job.state:
        case JobState.SCHEDULED:
            text = f"it is scheduled for {job.run_at_ms}"
            if job.errors and job.errors[-1].reason == UNHEARD:
                text += f": its throttler failed, {job.errors[-1].text}"
            return [Reason(Rule.RUN_AT, text, job.run_at_ms)]
        case JobState.LEASED:
            text = f"it runs: worker {job.worker!r} has it, attempt {job.attempt}"
            return [Reason(Rule.STATE, text, job.lease_until_ms)]
        case JobState.WAITING:
            text = f"it waits for the reply {job.reply_key!r}"
            return [Reason(Rule.STATE, text, job.wait_until_ms)]
        case JobState.READY:
            assert job.turn is not None
            return _ready_reasons(book, job, job.turn, now_ms)
        case _:
            last = job.errors[-1] if job.errors else None
            text = f"it is {job.state}" + (f": {last.reason}" if last else "")
            return [Reason(Rule.STATE, text)]


def _ready_reasons(book: Book, job: Job, turn: Turn, now_ms: int) -> list[Reason]:
    strand = turn.strand
    gate = strand.lane.queue.gate
    reasons: list[Reason] = []
    if gate.holds & BLOCKED:
        reasons.append(Reason(Rule.QUEUE_BLOCKED, "its queue is blocked"))
    if gate.holds & PAUSED:
        reasons.append(Reason(Rule.QUEUE_PAUSED, "its queue is paused"))
    if strand.holds & KIND:
        reasons.append(Reason(Rule.KIND_PAUSED, f"kind {job.spec.kind!r} is paused"))
    windows = strand.windows
    if windows is not None and (strand.holds & WINDOW or not windows.is_open(now_ms)):
        opens_ms = windows.opens_ms(now_ms)
        reasons.append(Reason(Rule.WINDOW, f"its window opens at {opens_ms}", opens_ms))
    if turn.tenancy.rule.holds:
        text = f"tenant {turn.tenancy.name!r} is paused"
        reasons.append(Reason(Rule.TENANT_PAUSED, text))
    if isinstance(turn.parked_on, Job):
        reasons.append(Reason(Rule.THROTTLER, _unheard(job, turn, turn.parked_on)))
    reasons += _limit_reasons(book, job, turn, now_ms)
    if turn.tier == OVER:
        reasons.append(_over_share(book, turn, now_ms))
    return reasons or [Reason(Rule.BUSY, "it waits for a free worker")]


def _unheard(job: Job, turn: Turn, asked: Job) -> str:
    """What is known of the verdict that its turn waits for."""
    failed = turn.strand.lane.queue.unheard.get(asked.seq)
    if failed is None:
        return "the throttler of its queue has not answered yet"
    which = "it" if asked is job else "a job before it"
    return f"the throttler of its queue has no verdict on {which}: {failed}"


def _limit_reasons(book: Book, job: Job, turn: Turn, now_ms: int) -> list[Reason]:
    """Gauges that something above it is parked on, or that would stop it next."""
    strand = turn.strand
    places = (strand.lane.queue.gate, turn)
    gauges = [p.parked_on for p in places if isinstance(p.parked_on, Gauge)]
    if not gauges and strand.shape == strand.lane.queue.rules.shape:
        outcome = check(turn, job, book.shared.ledger, now_ms)
        if isinstance(outcome, Limited):
            gauges.append(outcome.gauge)
        elif outcome is Delivery.START:
            return []
    return [_limit_reason(book, gauge, job, now_ms) for gauge in gauges]


def _limit_reason(book: Book, gauge: Gauge, job: Job, now_ms: int) -> Reason:
    of = f" of {gauge.value!r}" if gauge.value else ""
    if isinstance(gauge, RateGauge):
        ready_ms = gauge.ready_ms(job.cost, now_ms)
        return Reason(Rule.LIMIT, f"rate {gauge.limit!r}{of} is used up", ready_ms)
    holders = [
        other.seq
        for other in book.jobs.values()
        if any(hold.gauge is gauge for hold in other.holds)
    ]
    text = f"limit {gauge.limit!r}{of} is used up: {gauge.used} of {gauge.max}"
    return Reason(Rule.LIMIT, text, None, tuple(holders[:HOLDERS]))


def _over_share(book: Book, turn: Turn, now_ms: int) -> Reason:
    ledger = book.shared.ledger
    group = turn.tenancy.account.group
    allowed = ledger.level(now_ms) * group.weight
    who = "tenants not seen before" if group is ledger.newcomers else repr(group.name)
    text = f"{who} hold {group.leased} worker slots, their fair share is {allowed:.1f}"
    return Reason(Rule.OVER_SHARE, text)


def _ahead(job: Job) -> int:
    """Its own tenant's jobs before it, and for each of them one of every other."""
    turn = job.turn
    assert turn is not None
    key = (*turn.strand.lane.queue.rules.key_of(job), job.seq)
    rows = rows_of(turn) + (turn.late or [])
    mine = sum(1 for row in rows if row[:3] < key and row[3].turn is turn)
    lane = turn.strand.lane
    others = lane.ready - turn.tenancy.ready
    tenants = max(0, sum(1 for t in lane.tenancies.values() if t.ready) - 1)
    return mine + min(others, (mine + 1) * tenants)


def _starts_ms(job: Job, reasons: list[Reason], ahead: int, now_ms: int) -> int | None:
    if job.state is JobState.SCHEDULED:
        return job.run_at_ms
    if job.turn is None:
        return None
    first = reasons[0]
    if first.until_ms is not None:
        return first.until_ms
    if first.rule not in (Rule.BUSY, Rule.LIMIT, Rule.OVER_SHARE):
        return None
    interval_ms = job.turn.strand.lane.start_interval_ms
    return now_ms + round((ahead + 1) * interval_ms) if interval_ms else None
