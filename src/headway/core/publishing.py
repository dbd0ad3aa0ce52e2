"""Published writes: many jobs that were accepted as a whole, and are taken in in steps.

A publication is one record. From then on its jobs are accepted; whoever has them brings
them page by page, and each page moves the record on in the same commit.
"""

from enum import StrEnum
from typing import Final

from msgspec.structs import astuple

from headway.core import intake
from headway.core.book import Book
from headway.core.commands import FactKind, PublishWrite, TakeIn
from headway.core.errors import BadValue, IdempotencyConflict, TooManyWrites
from headway.core.queue import Queue
from headway.core.spec import JobSpec
from headway.core.write import Write, WriteView, view_of

RUNNING_MAX: Final = 100
"""Published writes that were not taken in yet."""
ENDED_KEPT: Final = 10_000
"""Writes that are known after they were taken in, so that a repetition is told."""
SERIES_MAX: Final = 1_000
"""Series whose last write is known; beyond, the one that ended first is forgotten."""
QUEUES_MAX: Final = 1_000
"""Queues that one write may have jobs for."""
JOBS_MAX: Final = 100_000_000


class Fate(StrEnum):
    """What became of a job that was taken in."""

    NEW = "new"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"


def find(book: Book, name: str, series: str = "", number: int = 0) -> Write | None:
    """The write of this name, or of a series the one that went at least as far."""
    known = book.writes.get(name)
    if known is None and series:
        newest = book.series.get(series)
        if newest is not None and newest.number >= number:
            known = newest
    return known


def publish(book: Book, command: PublishWrite, now_ms: int) -> WriteView:
    """All of its jobs are accepted, or none. A repetition changes nothing."""
    known = find(book, command.id, command.series, command.number)
    if known is not None:
        return view_of(known, is_repeated=True)
    _check(book, command)
    for part in command.parts:
        queue = book.queue(part.queue)
        intake.check_length(queue, part.jobs)
        # No other of its SLOs is refused if the strictest is not.
        queue.slo_class(part.least_slo_ms)
    write = Write(
        id=command.id,
        digest=command.digest,
        jobs=sum(part.jobs for part in command.parts),
        queues={part.queue: part.jobs for part in command.parts},
        left={part.queue: part.jobs for part in command.parts},
        published_ms=now_ms,
        series=command.series,
        number=command.number,
    )
    before = book.series.get(write.series)
    remember(book, write)
    if before is not None and before.ended_ms is not None:
        _forget(book, before)
    elif before is None and len(book.series) > SERIES_MAX:
        _forget_series(book)
    if not write.jobs:
        _end(book, write, now_ms)
    book.know(FactKind.WRITE, "", write.id)
    return view_of(write)


def take_in(book: Book, command: TakeIn, now_ms: int) -> WriteView:
    """The next jobs of a write. A page that is not the next one changes nothing."""
    write = book.writes.get(command.id)
    if write is None:
        raise BadValue("id", command.id, "there is no such write")
    if write.ended_ms is not None or command.first != write.taken:
        return view_of(write)
    queue = book.queue(command.queue)
    count = len(command.specs)
    if not 0 < count <= write.left.get(queue.name, 0):
        raise BadValue("specs", count, "there are not so many left")
    for spec in command.specs:
        match _take(book, queue, spec, now_ms):
            case Fate.DUPLICATE:
                write.duplicates += 1
            case Fate.CONFLICT:
                write.conflicts += 1
    write.taken += count
    write.left[queue.name] -= count
    queue.coming -= count
    if not write.left[queue.name]:
        del write.left[queue.name]
    if not write.left:
        _end(book, write, now_ms)
    book.know(FactKind.WRITE, "", write.id)
    return view_of(write)


def remember(book: Book, write: Write) -> None:
    """Takes its place among the writes; jobs that are to come count for their queues."""
    book.writes[write.id] = write
    for name, count in write.left.items():
        book.queues[name].coming += count
    if write.series:
        newest = book.series.get(write.series)
        if newest is None or newest.number <= write.number:
            book.series[write.series] = write


def _take(book: Book, queue: Queue, spec: JobSpec, now_ms: int) -> Fate:
    """Accepted long since: what may stand against an enqueue is counted, not raised."""
    key = spec.idempotency_key
    if key is not None:
        window_ms = queue.rules.config.idempotency_window_ms
        try:
            if queue.keys.find(key, spec, window_ms, now_ms) is not None:
                return Fate.DUPLICATE
        except IdempotencyConflict:
            return Fate.CONFLICT
    slo_ms = queue.slo_class(spec.slo_ms)
    intake.accept(book, queue, spec, astuple(spec), now_ms, slo_ms=slo_ms)
    return Fate.NEW


def _check(book: Book, command: PublishWrite) -> None:
    names = {part.queue for part in command.parts}
    if len(names) != len(command.parts) or len(names) > QUEUES_MAX:
        raise BadValue("queues", len(command.parts), f"at most {QUEUES_MAX}, each once")
    if any(part.jobs < 1 for part in command.parts):
        raise BadValue("jobs", 0, "every queue has at least one")
    jobs = sum(part.jobs for part in command.parts)
    if jobs > JOBS_MAX:
        raise BadValue("jobs", jobs, f"at most {JOBS_MAX}")
    running = sum(1 for write in book.writes.values() if write.ended_ms is None)
    if running >= RUNNING_MAX:
        raise TooManyWrites(f"{RUNNING_MAX} writes are being taken in already")


def _end(book: Book, write: Write, now_ms: int) -> None:
    write.ended_ms = now_ms
    newest = book.series.get(write.series)
    if newest is not None and newest is not write:
        _forget(book, write)
    ended = [x for x in book.writes.values() if x.ended_ms is not None and not x.series]
    if len(ended) > ENDED_KEPT:
        _forget(book, min(ended, key=lambda one: (one.ended_ms, one.id)))


def _forget_series(book: Book) -> None:
    ended = [x for x in book.series.values() if x.ended_ms is not None]
    if ended:
        oldest = min(ended, key=lambda one: (one.ended_ms, one.id))
        del book.series[oldest.series]
        _forget(book, oldest)


def _forget(book: Book, write: Write) -> None:
    del book.writes[write.id]
    book.know(FactKind.WRITE, "", write.id)
