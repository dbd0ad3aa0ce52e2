"""Looking ahead: what a batch of jobs is about to ask for is asked for all at once.

Where memory holds many turns, what a job needs of its own turn, tenant and limits is in
no cache, and each line of it would be waited for one after the other. A processor waits
for many lines at a time, as long as little else is done between them: so each loop here
looks at one line of each of many objects, and at nothing else. Nothing changes by it.
"""

from typing import TYPE_CHECKING, Final

from headway.core.job import Job
from headway.core.rules import value_of
from headway.core.turn import Turn

if TYPE_CHECKING:
    from headway.core.book import Book
    from headway.core.fairness import Tenancy
    from headway.core.lane import LaneTier, TenancyTier
    from headway.core.limits import Gauge
    from headway.core.queue import Queue
    from headway.core.spec import JobSpec

TURNS_MIN: Final = 4_096
"""With fewer turns than this in memory they are in some cache, or soon will be..."""
JOBS_MIN: Final = 8
"""...and for fewer jobs it is not worth it."""
FLOOR: Final = -(1 << 60)
"""Below every time, count and key: what is looked at is compared with it."""


def is_worth_it(book: "Book", jobs: int) -> bool:
    return jobs >= JOBS_MIN and book.shared.turns >= TURNS_MIN


def at_ends(book: "Book", tokens: list[int]) -> None:
    """Leases are about to end: their jobs, and whoever waits for what they hold."""
    jobs = book.leases.some(tokens)
    _look_at_jobs(jobs)
    for job in jobs:
        book.timers.peek(job.timer_ms, job.timer_place)
    book.jobs.some([job.seq for job in jobs])
    tenancies = [job.tenancy for job in jobs]
    _look_at_tenancies([tenancy for tenancy in tenancies if tenancy is not None])
    holds = [job.holds for job in jobs]
    firsts = [hold[0] for hold in holds if hold]
    parts = [hold.part for hold in firsts]
    for part in parts:
        assert part.stops > FLOOR
    turns = _parked_on([hold.gauge for hold in firsts])
    _look_at_turns(turns)
    _look_at_fronts(turns)


def at_arrivals(queue: "Queue", specs: "list[JobSpec]", slo_ms: int) -> None:
    """Jobs are about to join their turns."""
    turns = _turns_to_join(queue, specs, slo_ms)
    _look_at_turns(turns)
    backs = [turn.back for turn in turns]
    for back in backs:
        assert back is None or back.seq > FLOOR
    _look_at_tenancies([turn.tenancy for turn in turns])


def at_starts(lane_tier: "LaneTier", most: int) -> None:
    """Turns of the lane are about to start a job each."""
    tiers = lane_tier.shelf.coming(most)
    tops = [tier.solo for tier in tiers]
    turns = [turn for turn in tops if turn is not None]
    _look_at_turns(turns)
    _look_at_fronts(turns)
    _look_at_tenancies([tier.tenancy for tier in tiers])


def _turns_to_join(queue: "Queue", specs: "list[JobSpec]", slo_ms: int) -> list[Turn]:
    """As far as they are easily told: by their tenant, or by one value of a strand."""
    rules = queue.rules
    lane = queue.lanes.get(slo_ms)
    if lane is None or not rules.is_fair or len(rules.dims) > 1:
        return []
    if not rules.dims:
        common = lane.common
        return [] if common is None else common.turns_of([x.tenant for x in specs])
    values = [value_of(rules.dims[0], spec) for spec in specs]
    by_value = lane.by_value
    found = [by_value.get(value) for value in values]
    lone = [None if strand is None else strand.lone for strand in found]
    return [turn for turn in lone if turn is not None]


def _look_at_jobs(jobs: list[Job]) -> None:
    """A job is some seven lines."""
    for job in jobs:
        assert job.seq > FLOOR
    for job in jobs:
        assert job.token > FLOOR
    for job in jobs:
        assert job.timer_ms > FLOOR
    for job in jobs:
        assert job.want > FLOOR
    # Here and below, taking hold of an object is to look at its first line.
    specs = [job.spec for job in jobs]
    names = [job.tenant for job in jobs]
    assert len(specs) == len(names)
    for job in jobs:
        assert job.enqueued_ms > FLOOR


def _look_at_turns(turns: list[Turn]) -> None:
    for turn in turns:
        assert turn.mark > FLOOR
    for turn in turns:
        assert turn.count > FLOOR
    for turn in turns:
        assert turn.held_ms > FLOOR
    for turn in turns:
        assert turn.last_seq > FLOOR
    strands = [turn.strand for turn in turns]
    for strand in strands:
        assert strand.closes_ms > FLOOR


def _look_at_fronts(turns: list[Turn]) -> None:
    fronts = [turn.front for turn in turns]
    _look_at_jobs([job for job in fronts if job is not None])


def _look_at_tenancies(tenancies: "list[Tenancy]") -> None:
    """What a tenant has in a lane, in its queue, and over all queues."""
    for tenancy in tenancies:
        assert tenancy.leased > FLOOR
    accounts = [tenancy.account for tenancy in tenancies]
    for account in accounts:
        assert account.since_ms > FLOOR
    rules = [tenancy.rule for tenancy in tenancies]
    gauges = [rule.gauges for rule in rules]
    assert len(gauges) == len(rules)
    entitled = [tenancy.entitled for tenancy in tenancies]
    tiers = [tier for tier in entitled if tier is not None]
    _look_at_tiers(tiers)


def _look_at_tiers(tiers: "list[TenancyTier]") -> None:
    for tier in tiers:
        assert tier.mark > FLOOR
    for tier in tiers:
        assert tier.size > FLOOR


def _parked_on(gauges: "list[Gauge]") -> list[Turn]:
    """Turns that wait alone for a limit."""
    for gauge in gauges:
        assert gauge.max > FLOOR
    members = [gauge.lone for gauge in gauges]
    return [member for member in members if isinstance(member, Turn)]
