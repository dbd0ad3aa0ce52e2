"""What comes in and what is taken out by hand: enqueue, cancel, redrive, purge."""

from collections.abc import Container
from heapq import nlargest
from typing import Any

from headway.core import ahead, events, life
from headway.core.book import Book
from headway.core.commands import (
    Accepted,
    Cancel,
    Changed,
    Enqueue,
    FactKind,
    Purge,
    Redrive,
)
from headway.core.config import WhenFull
from headway.core.errors import IdempotencyConflict, QueueFull, WrongState
from headway.core.events import Enqueued
from headway.core.fairness import stride_of
from headway.core.idempotency import fingerprint
from headway.core.job import Job
from headway.core.lane import Lane
from headway.core.queue import Queue
from headway.core.rules import Rules, check_shares
from headway.core.spec import JobSpec
from headway.core.spec_check import check_spec
from headway.core.states import JobState
from headway.core.turn import NOTHING_READ, Turn


def enqueue(book: Book, command: Enqueue, now_ms: int) -> Accepted:
    """All of the jobs or none: everything is checked before anything changes."""
    queue = book.queue(command.queue)
    rules = queue.rules
    specs = command.specs
    has_keys = False
    own_slos_ms: list[int | None] = []
    all_said: list[tuple[Any, ...]] = []
    for spec in specs:
        own_slo_ms, key, said = check_spec(spec)
        own_slos_ms.append(own_slo_ms)
        all_said.append(said)
        if key is not None:
            has_keys = True
        if rules.shares:
            check_shares(rules, spec)
    known = _known(queue, specs, now_ms) if has_keys else {}
    doomed = _doomed(queue, command, known)
    slos_ms = [queue.slo_class(slo_ms) for slo_ms in own_slos_ms]
    looks = ahead.is_worth_it(book, len(specs))
    seqs: list[int] = []
    jobs: list[Job | None] = []
    shed: list[int] = []
    turns: list[Turn | None] = []
    turn: Turn | None = None
    for number, spec in enumerate(specs):
        if looks:
            place = number % ahead.PIECE
            if place == 0:
                turns = ahead.at_arrivals(book, queue, all_said, slos_ms[0], number)
            turn = turns[place] if turns else None
        seq = known.get(number) if known else None
        if seq is None:
            is_shed = number in doomed
            said, slo_ms = all_said[number], slos_ms[number]
            job = accept(
                book,
                queue,
                spec,
                said,
                now_ms,
                slo_ms=slo_ms,
                turn=turn,
                is_shed=is_shed,
            )
            jobs.append(job)
            seqs.append(job.seq)
            if is_shed:
                shed.append(job.seq)
            continue
        jobs.append(None)
        seqs.append(seq if seq >= 0 else seqs[-1 - seq])
    return Accepted(seqs, len(known), shed=tuple(shed), jobs=jobs)


def cancel(book: Book, command: Cancel, now_ms: int) -> Changed:
    """At once, or for a leased job: its worker is told, and its units stay held."""
    job = book.job(command.seq)
    if job.state is JobState.DEAD:
        raise WrongState(f"job {job.seq} is dead: only a redrive moves it")
    if job.state is JobState.LEASED:
        if not job.is_cancel_requested:
            job.is_cancel_requested = True
            book.write(job, events.CancelRequested(now_ms, *life.whose(job)))
        return Changed(0)
    life.cancel(book, job, now_ms)
    return Changed(1)


def redrive(book: Book, command: Redrive, now_ms: int) -> Changed:
    """Back from the dead letters with fresh attempts; its errors stay with it."""
    job = book.job(command.seq)
    if job.state is not JobState.DEAD:
        raise WrongState(f"job {job.seq} is {job.state}, not dead")
    queue = book.queues[job.queue]
    queue.dead -= 1
    job.generation += 1
    job.attempt = 0
    job.is_cancel_requested = False
    job.cleared_ms = 0
    job.reply = None
    if command.payload is not None:
        life.replace_payload(job, command.payload)
    job.run_at_ms = now_ms
    job.started_ms = 0
    own_ms = job.spec.lifetime_ms
    job.expires_ms = now_ms + (queue.rules.lifetime_ms if own_ms is None else own_ms)
    book.write(job, events.Redriven(now_ms, *life.whose(job)))
    life.make_ready(book, queue, job, now_ms)
    return Changed(1)


def purge(book: Book, command: Purge, now_ms: int) -> Changed:
    """Cancels what has not started, of one tenant or of all."""
    queue = book.queue(command.queue)
    doomed = [
        job
        for job in book.jobs.values()
        if job.queue == queue.name
        and job.state in (JobState.READY, JobState.SCHEDULED)
        and (command.tenant is None or job.spec.tenant == command.tenant)
    ]
    for job in doomed:
        life.cancel(book, job, now_ms)
    return Changed(len(doomed))


def _known(queue: Queue, specs: list[JobSpec], now_ms: int) -> dict[int, int]:
    """Jobs that need not be made, by their place in the list: their seq, or for the
    twin of an earlier one in the list -1 less its place.
    """
    window_ms = queue.rules.config.idempotency_window_ms
    known: dict[int, int] = {}
    places: dict[str, int] = {}
    for number, spec in enumerate(specs):
        key = spec.idempotency_key
        if key is None:
            continue
        seq = queue.keys.find(key, spec, window_ms, now_ms)
        if seq is not None:
            known[number] = seq
        elif key in places:
            if fingerprint(spec) != fingerprint(specs[places[key]]):
                raise IdempotencyConflict(f"idempotency key {key!r} has two bodies")
            known[number] = -1 - places[key]
        else:
            places[key] = number
    return known


def _doomed(queue: Queue, command: Enqueue, known: dict[int, int]) -> Container[int]:
    """Places of the jobs that are shed: those that could best be done without.

    What was accepted earlier never makes room for what comes later.
    """
    config = queue.rules.config
    specs = command.specs
    if config.when_full is not WhenFull.SHED or command.is_refusable:
        check_length(queue, len(specs) - len(known))
        return ()
    over = _over(queue, len(specs) - len(known))
    if over <= 0:
        return ()

    def claim(place: int) -> tuple[bool, int, int, int]:
        spec = specs[place]
        slo_ms = config.slo_ms if spec.slo_ms is None else spec.slo_ms
        priority = config.priority if spec.priority is None else spec.priority
        return not spec.is_critical, slo_ms, priority, place

    return set(nlargest(over, set(range(len(specs))) - known.keys(), claim))


def check_length(queue: Queue, more: int) -> None:
    """Refuses jobs for which there is no room."""
    over = _over(queue, more)
    if over > 0:
        most = queue.rules.config.max_length
        assert most is not None
        length = most - more + over
        full = QueueFull(f"queue {queue.name!r} holds {length} of {most} jobs")
        when_full = queue.rules.config.when_full
        # What is more than the queue may ever hold waits for nothing.
        full.may_wait = when_full is WhenFull.WAIT and more <= most
        full.may_shed = when_full is WhenFull.SHED
        raise full


def _over(queue: Queue, more: int) -> int:
    """For how many of the jobs there is no room.

    Jobs that were accepted and are still to come count like those that are there.
    """
    most = queue.rules.config.max_length
    if most is None:
        return 0
    length = queue.ready + queue.scheduled + queue.leased + queue.coming
    return min(more, length + more - most)


def accept(
    book: Book,
    queue: Queue,
    spec: JobSpec,
    said: tuple[Any, ...],
    now_ms: int,
    *,
    slo_ms: int,
    turn: Turn | None = None,
    is_shed: bool = False,
) -> Job:
    """The job is there from now on; `said` is its spec, `turn` one of its tenant."""
    rules = queue.rules
    kind, _, _, tenant, _, at_ms, delay_ms, priority, weight, cost = said[:10]
    _, labels, windows, _, lifetime_ms, attempts_max, _, key, _, _ = said[10:]
    run_at_ms = now_ms if delay_ms is None else now_ms + delay_ms
    if at_ms is not None and at_ms > run_at_ms:
        run_at_ms = at_ms
    book.last_seq = seq = book.last_seq + 1
    job = Job(seq, spec, queue.name, now_ms, said)
    job.slo_ms = slo_ms
    job.priority = rules.priority if priority is None else priority
    job.cost = _cost(rules, kind) if cost is None else cost
    job.attempts_max = rules.attempts_max if attempts_max is None else attempts_max
    life_ms: int = rules.lifetime_ms if lifetime_ms is None else lifetime_ms
    job.expires_ms = now_ms + life_ms
    if key is not None:
        digest = queue.keys.add(key, seq, spec, now_ms)
        book.decision.keys.append((queue.name, key, seq, digest, now_ms))
    book.jobs.add(seq, job)
    if weight is not None:
        set_weight(book, queue, tenant, weight, now_ms)
    if rules.is_levelled:
        _fix_level(queue, job)
    if windows is None:
        job.run_at_ms = rules.opens_ms(run_at_ms)
    else:
        job.run_at_ms = windows.opens_ms(run_at_ms)
    enqueued = Enqueued(
        now_ms,
        job.seq,
        0,
        queue.name,
        slo_ms,
        tenant,
        kind,
        job.run_at_ms,
        job.priority,
        job.cost,
        labels,
        weight,
    )
    book.write(job, enqueued)
    if is_shed:
        life.shed(book, queue, job, now_ms)
    elif job.run_at_ms <= now_ms:
        life.make_ready(book, queue, job, now_ms, turn)
    else:
        life.make_scheduled(book, queue, job, now_ms)
    return job


def set_weight(
    book: Book, queue: Queue, tenant: str, weight: float, now_ms: int
) -> None:
    """Holds from the tenant's next start on, backlog included."""
    rule = queue.own_rule(tenant)
    if rule.weight != weight:
        rule.set_weight(weight)
        book.know(FactKind.TENANT, queue.name, tenant)
        account = book.shared.ledger.accounts.get(tenant)
        if account is not None:
            book.shared.ledger.set_weight(account, weight, now_ms)


def _cost(rules: Rules, kind: str) -> int:
    """What a job costs that does not say so itself."""
    rule = rules.kinds.get(kind)
    return rules.cost if rule is None or rule.cost is None else rule.cost


def _fix_level(queue: Queue, job: Job) -> None:
    """For comparison: a pass fixed when the job is stored, as fair levels do it."""
    tenant = job.spec.tenant
    weight = (
        queue.rules.tenants[tenant].weight if tenant in queue.rules.tenants else 1.0
    )
    level = queue.levels.get(tenant, 0) + stride_of(weight)
    job.level = max(level, queue.level_base)
    queue.levels[tenant] = job.level


def waits_ms(book: Book, told: Accepted, now_ms: int) -> list[int | None]:
    """How long each of the jobs is expected to wait for its start, at little cost.

    None where nothing is known: what holds it has no end, or nothing has started yet.
    """
    # Spelled out: this runs for every job that is enqueued. Jobs that come together
    # mostly stand together, so what is known of the last one's place is kept.
    found: list[int | None] = []
    wait_ms: int | None = None
    turn: Turn | None = None
    lane: Lane | None = None
    interval_ms = 0.0
    ready = tenants = 0
    for place, new in enumerate(told.jobs):
        job = book.jobs.get(told.seqs[place]) if new is None else new
        last, turn = turn, None if job is None else job.turn
        if turn is None:
            found.append(None if job is None else _wait_ms(job, now_ms))
            continue
        if turn is not last:
            strand = turn.strand
            tenancy = turn.tenancy
            cut = turn.cut
            if strand.lane is not lane:
                lane = strand.lane
                interval_ms = 0.0 if lane.queue.gate.holds else lane.start_interval_ms
                ready = lane.ready
                tenants = len(lane.tenancies)
            if not interval_ms or strand.holds or tenancy.rule.holds:
                wait_ms = None
            elif cut is None:
                ahead = tenancy.ready * tenants
                wait_ms = int((ahead if ahead < ready else ready) * interval_ms)
            else:
                # How many its tenant has in the store is not counted: all, at worst.
                wait_ms = None if cut is NOTHING_READ else int(ready * interval_ms)
        found.append(wait_ms)
    return found


def _wait_ms(job: Job, now_ms: int) -> int | None:
    """Of a job that is not ready."""
    if job.state is JobState.SCHEDULED:
        return max(0, job.run_at_ms - now_ms)
    return None if job.state is JobState.DEAD else 0
