"""Every counter of a partition against a recount of its jobs (invariant 18)."""

from collections import Counter
from typing import Any

from headway.core.book import Book
from headway.core.job import Job
from headway.core.limits import Gauge
from headway.core.queue import Queue
from headway.core.shares import ShareGauge
from headway.core.shelf import NEVER
from headway.core.states import JobState
from headway.core.turn import Turn


def check_counters(book: Book) -> None:
    by_queue: dict[str, list[Job]] = {name: [] for name in book.queues}
    for job in book.jobs.values():
        by_queue[job.queue].append(job)
        _check_timer(job)
    for name, queue in book.queues.items():
        _check_states(queue, by_queue[name])
        _check_places(queue, by_queue[name])
        _check_gauges(queue, by_queue[name])
    leased = [job for job in book.jobs.values() if job.state is JobState.LEASED]
    assert dict(book.leases.items()) == {job.token: job for job in leased}, (
        "invariant 8"
    )
    _check_ledger(book, leased)


def _check_states(queue: Queue, jobs: list[Job]) -> None:
    counts = Counter(job.state for job in jobs)
    assert queue.ready == counts[JobState.READY], "invariant 18"
    assert queue.scheduled == counts[JobState.SCHEDULED], "invariant 18"
    assert queue.leased == counts[JobState.LEASED], "invariant 18"
    assert queue.waiting == counts[JobState.WAITING], "invariant 18"
    assert queue.dead == counts[JobState.DEAD], "invariant 18"
    assert counts[JobState.DONE] == counts[JobState.CANCELLED] == 0


def _check_places(queue: Queue, jobs: list[Job]) -> None:
    lanes: Counter[Any] = Counter()
    tenancies: Counter[Any] = Counter()
    turns: Counter[Any] = Counter()
    for job in jobs:
        if job.state is JobState.READY:
            turn = job.turn
            assert turn is not None
            assert turn.strand.lane.queue is queue
            turns[turn] += 1
            lanes[turn.strand.lane] += 1
            tenancies[turn.tenancy] += 1
        else:
            assert job.turn is None
    for lane in queue.all_lanes():
        assert lane.ready == lanes[lane]
        for tenancy in lane.tenancies.values():
            assert tenancy.ready == tenancies[tenancy]
        for strand in lane.strands.values():
            for turn in strand.turns.values():
                assert turn.count == turns[turn]
    assert all(turn.count == count for turn, count in turns.items())
    assert all(lane in queue.all_lanes() for lane in lanes)


def _check_gauges(queue: Queue, jobs: list[Job]) -> None:
    used: Counter[Any] = Counter()
    pools: Counter[Any] = Counter()
    parts: Counter[Any] = Counter()
    for job in jobs:
        seen = [hold.gauge for hold in job.holds]
        assert len(seen) == len(set(map(id, seen))), "a gauge is taken once"
        for hold in job.holds:
            used[hold.gauge] += hold.amount
            parts[hold.part or hold] += hold.amount
            if isinstance(hold.gauge, ShareGauge):
                pools[hold.gauge.pool] += hold.amount
    for gauge in {*used, *queue.rules.book.all()}:
        assert gauge.used == used[gauge], (gauge.limit, gauge.value)
        if isinstance(gauge, ShareGauge):
            assert gauge.pool.used == pools[gauge.pool], gauge.limit
    _check_uses(queue, parts)
    counting = [job for job in jobs if not job.spec.is_critical]
    slots = sum(job.state is JobState.LEASED for job in counting)
    assert queue.slot_gauge.used == slots


def _check_uses(queue: Queue, units: Counter[Any]) -> None:
    """What limits are used for is told of all who hold or wait, and of nobody else."""
    waiting: Counter[Any] = Counter()
    stopped: Counter[Any] = Counter()
    members: list[Any] = [queue.gate]
    known = set(queue.rules.book.all())
    owners: Counter[Any] = Counter()
    for rule in queue.rules.tenants.values():
        owners.update(rule.gauges)
    for lane in queue.all_lanes():
        for strand in lane.strands.values():
            members += strand.turns.values()
            owners.update(strand.gauges)
            if strand.shape == queue.rules.shape:
                # Else another strand of the value would have units of its own.
                assert known.issuperset(strand.gauges), strand.key
                _check_kept_holds(queue, list(strand.turns.values()))
    assert all(gauge.owners >= count for gauge, count in owners.items())
    for rule in queue.rules.tenants.values():
        assert known.issuperset(rule.gauges), rule.name
    for member in members:
        gauge = member.parked_on
        is_at_limit = isinstance(gauge, Gauge) and gauge is not queue.slot_gauge
        assert (member.stopped is not None) == is_at_limit, member
        if is_at_limit:
            waiting[gauge] += 1
            stopped[member.stopped] += 1
    for gauge in queue.rules.book.all():
        use = gauge.use
        if use is None or not use.is_open:
            assert not gauge.used
            assert not waiting[gauge]
            if use is not None:
                assert use.parts() == [use]
                figures = (use.units, use.used_ms, use.waiting, use.blocked_ms)
                assert not any((*figures, use.stops, use.line, use.full_ms, use.kept))
            continue
        assert use.line == waiting[gauge], (gauge.limit, gauge.value)
        parts = use.parts()
        for part in parts:
            assert part.units == units[part]
            assert part.waiting == stopped[part]
        assert sum(part.units for part in parts) == gauge.used


def _check_kept_holds(queue: Queue, turns: list[Turn]) -> None:
    """What a turn would take again is what it would find."""
    for turn in turns:
        own = turn.tenancy.rule.gauges
        gauges = (*queue.rules.gauges, *turn.strand.gauges, *own)
        if len(turn.holds) == len(gauges):
            for hold, gauge in zip(turn.holds, gauges, strict=True):
                if (hold.part or hold).is_open:
                    assert hold.gauge is gauge
                    assert gauge.use is not None
                    assert (hold.part or hold) in gauge.use.parts()


def _check_ledger(book: Book, leased: list[Job]) -> None:
    ledger = book.shared.ledger
    assert ledger.leased == len(leased)
    assert ledger.leased_over == sum(job.is_over for job in leased)
    wants: Counter[Any] = Counter()
    slots: Counter[Any] = Counter()
    without = 0
    for job in leased:
        tenancy = job.tenancy
        assert tenancy is not None
        if tenancy.name:
            slots[tenancy.account] += 1
            wants[tenancy.account] += job.want
        else:
            without += 1
    assert ledger.leased_without == without
    for job in book.jobs.values():
        if job.turn is not None and job.turn.tenancy.name:
            wants[job.turn.tenancy.account] += job.want
    new_wants = new_slots = 0
    accounts: set[Any] = {*ledger.accounts.values(), *wants}
    for account in accounts:
        assert account in ledger.accounts.values(), account.name
        assert account.want == wants[account], account.name
        assert account.leased == slots[account], account.name
        if account.group is ledger.newcomers:
            new_wants += account.want
            new_slots += account.leased
    assert ledger.newcomers.want == new_wants
    assert ledger.newcomers.leased == new_slots


def _check_timer(job: Job) -> None:
    match job.state:
        case JobState.SCHEDULED:
            at_ms = min(job.expires_ms, job.run_at_ms)
        case JobState.LEASED:
            at_ms = min(job.expires_ms, job.lease_until_ms, job.timeout_at_ms)
        case JobState.WAITING:
            at_ms = min(job.expires_ms, job.wait_until_ms, job.timeout_at_ms)
        case JobState.READY:
            at_ms = job.expires_ms
        case _:
            at_ms = NEVER
    assert job.timer_ms == (at_ms if at_ms < NEVER else 0), job.state
