"""Bulk operations at work: each page changes some jobs and says how far it got."""

from headway.core import events, intake, life
from headway.core.book import Book
from headway.core.bulk import (
    ENDED_KEPT,
    RUNNING_MAX,
    Bulk,
    BulkState,
    BulkVerb,
    BulkView,
    Filter,
    check_bulk,
    view_of,
)
from headway.core.commands import (
    BulkPage,
    Changed,
    FactKind,
    Redrive,
    StartBulk,
    StopBulk,
)
from headway.core.errors import TooManyBulks, UnknownBulk
from headway.core.queue import Queue
from headway.core.states import DEAD, READY, SCHEDULED


def start(book: Book, command: StartBulk, now_ms: int) -> BulkView:
    """Nothing is done yet: whoever has the store brings the pages."""
    assert not command.is_preview, "a preview is a query"
    queue = book.queue(command.queue)
    verb, which = command.verb, command.filter
    check_bulk(verb, which, command.rate_per_s)
    running = [x for x in book.bulks.values() if x.state is BulkState.RUNNING]
    if len(running) >= RUNNING_MAX:
        raise TooManyBulks(f"{RUNNING_MAX} bulk operations run already")
    bulk = Bulk(
        max(book.bulks, default=0) + 1,
        queue.name,
        verb,
        which,
        command.rate_per_s,
        now_ms,
        book.last_seq,
        known_total(queue, verb, which),
    )
    book.bulks[bulk.id] = bulk
    _note(book, bulk, "started", now_ms)
    return view_of(bulk)


def stop(book: Book, command: StopBulk, now_ms: int) -> BulkView:
    """What was done stays done; one that has ended stays as it is."""
    bulk = book.bulks.get(command.id)
    if bulk is None:
        raise UnknownBulk(f"there is no bulk operation {command.id}")
    if bulk.state is BulkState.RUNNING:
        _end(book, bulk, BulkState.STOPPED, now_ms)
    return view_of(bulk)


def page(book: Book, command: BulkPage, now_ms: int) -> Changed:
    """Jobs that have moved on in the meantime are left alone."""
    bulk = book.bulks[command.id]
    done = sum(_act(book, bulk, seq, now_ms) for seq in command.seqs)
    bulk.done += done
    bulk.failed += len(command.seqs) - done + command.missing
    bulk.cursor = command.cursor
    if bulk.rate_per_s is not None:
        bulk.paid_ms = max(bulk.paid_ms, now_ms) + done * 1_000 / bulk.rate_per_s
    else:
        bulk.paid_ms = now_ms
    if command.is_end:
        _end(book, bulk, BulkState.FINISHED, now_ms)
    else:
        book.know(FactKind.BULK, bulk.queue, str(bulk.id))
    return Changed(done)


def known_total(queue: Queue, verb: BulkVerb, which: Filter) -> int | None:
    """How many jobs are meant, where counts say it."""
    if which.seqs is not None:
        is_plain = which == Filter(seqs=which.seqs)
        return len(set(which.seqs)) if is_plain else None
    if which != Filter():
        return None
    return queue.ready + queue.scheduled if verb is BulkVerb.PURGE else queue.dead


def _act(book: Book, bulk: Bulk, seq: int, now_ms: int) -> bool:
    job = book.jobs.get(seq)
    if job is None or job.queue != bulk.queue:
        return False
    state = job.state
    match bulk.verb:
        case BulkVerb.PURGE:
            if state is not READY and state is not SCHEDULED:
                return False
            life.cancel(book, job, now_ms)
        case _ if state is not DEAD:
            return False
        case BulkVerb.REDRIVE:
            intake.redrive(book, Redrive(seq), now_ms)
        case BulkVerb.DISCARD:
            life.discard(book, job, now_ms)
    return True


def _end(book: Book, bulk: Bulk, state: BulkState, now_ms: int) -> None:
    bulk.state = state
    bulk.ended_ms = now_ms
    bulk.cursor = None
    _note(book, bulk, str(state), now_ms)
    ended = [
        (other.ended_ms, other.id)
        for other in book.bulks.values()
        if other.ended_ms is not None and other is not bulk
    ]
    # No more run than are kept, so one that has the highest number is never dropped.
    for _, old in sorted(ended)[: 1 - ENDED_KEPT]:
        gone = book.bulks.pop(old)
        book.know(FactKind.BULK, gone.queue, str(old))


def _note(book: Book, bulk: Bulk, what: str, now_ms: int) -> None:
    """To be written, and told to history."""
    book.know(FactKind.BULK, bulk.queue, str(bulk.id))
    told = f"bulk {bulk.id} {bulk.verb} {what}"
    book.decision.events.append(events.RuleChanged(now_ms, bulk.queue, told))
