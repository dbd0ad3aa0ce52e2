"""Bulk operations: their pages are read here, one for a step of the owner.

A purge goes through the lanes of its queue, and jobs may move behind it: what was not
met in one sweep is met in the next, and it ends with one that met nothing.
"""

from typing import Final

import msgspec

from headway.core.book import Book
from headway.core.bulk import (
    Bulk,
    BulkState,
    BulkVerb,
    BulkView,
    Cursor,
    Filter,
    check_bulk,
    view_of,
)
from headway.core.commands import (
    Answer,
    BulkPage,
    Changed,
    Command,
    Fetched,
    Purge,
    StartBulk,
)
from headway.core.errors import RuleBroken
from headway.core.job import Job
from headway.core.sweeps import known_total
from headway.runtime import scanning
from headway.runtime.scanning import Found, Most
from headway.runtime.views import JobView, job_view
from headway.store.port import HELD, SCHEDULED, START, Position, Store

PAGE_ROWS: Final = 2_000
"""Rows that are looked at for one page."""
PREVIEW_ROWS: Final = 10_000
SAMPLE: Final = 20


class BulkPreview(msgspec.Struct, frozen=True):
    """What a bulk operation would meet, if it was started now."""

    matched: int
    is_more: bool
    """Only so many jobs were looked at, and there are others."""
    sample: list[JobView]
    """The first of them."""


class BulkList(msgspec.Struct, frozen=True):
    """Those that run and the newest that have ended, newest first."""

    bulks: list[BulkView]


class ListBulks(msgspec.Struct, eq=False):
    """Asks for the bulk operations. Answered by a BulkList."""


class Bulks:
    """Brings the bulk operations of a book on, by what its store holds."""

    def __init__(self, book: Book, store: Store) -> None:
        self._book = book
        self._store = store
        self._asked: dict[StartBulk, Purge] = {}
        self._purges: list[tuple[Purge, Bulk]] = []
        """Callers who wait for the end of their purge."""

    def for_purge(self, purge: Purge) -> StartBulk:
        """What is done for a caller who waits until all is purged."""
        start = StartBulk(purge.queue, BulkVerb.PURGE, Filter(tenant=purge.tenant))
        self._asked[start] = purge
        return start

    def heard(self, start: StartBulk, answer: Answer) -> list[tuple[Command, Answer]]:
        """Who is to be told of it now: not the caller of a purge that has begun."""
        purge = self._asked.pop(start, None)
        if purge is None:
            return [(start, answer)]
        if isinstance(answer, BulkView):
            self._purges.append((purge, self._book.bulks[answer.id]))
            return []
        return [(purge, answer)]

    def purged(self) -> list[tuple[Command, Answer]]:
        """Callers whose purge has come to its end, and how many jobs it took."""
        if not self._purges:
            return []
        ended = [pair for pair in self._purges if pair[1].ended_ms is not None]
        self._purges = [pair for pair in self._purges if pair[1].ended_ms is None]
        return [(purge, Changed(bulk.done)) for purge, bulk in ended]

    def next_ms(self) -> int | None:
        """When there is a page to be read."""
        return min((bulk.next_ms() for bulk in self._running()), default=None)

    def page(self, now_ms: int) -> list[Command]:
        """The next page of the one that has waited longest, if any is due."""
        due = [bulk for bulk in self._running() if bulk.next_ms() <= now_ms]
        if not due:
            return []
        bulk = min(due, key=lambda bulk: (bulk.paid_ms, bulk.id))
        if bulk.verb is BulkVerb.PURGE:
            return self._purge_page(bulk)
        if bulk.filter.seqs is not None:
            return self._named_page(bulk)
        return self._dead_page(bulk)

    def preview(self, ask: StartBulk) -> BulkPreview | RuleBroken:
        """Looks, and changes nothing."""
        try:
            queue = self._book.queue(ask.queue)
            check_bulk(ask.verb, ask.filter, ask.rate_per_s)
        except RuleBroken as error:
            return error
        total = None
        if ask.filter.seqs is None:
            total = known_total(queue, ask.verb, ask.filter)
        jobs = PREVIEW_ROWS if total is None else SAMPLE
        most = Most(jobs, PREVIEW_ROWS)
        if ask.verb is BulkVerb.PURGE:
            last_seq = self._book.last_seq
            found = self._unstarted(ask.queue, ask.filter, last_seq, None, most)
        else:
            found = scanning.dead(self._store, ask.queue, ask.filter, START, most)
        sample = [job_view(job) for job in found.jobs[:SAMPLE]]
        if total is not None:
            return BulkPreview(total, is_more=False, sample=sample)
        return BulkPreview(len(found.jobs), not found.is_end, sample)

    def view(self) -> BulkList:
        bulks = sorted(self._book.bulks.values(), key=lambda bulk: -bulk.id)
        return BulkList([view_of(bulk) for bulk in bulks])

    def _running(self) -> list[Bulk]:
        bulks = self._book.bulks.values()
        return [bulk for bulk in bulks if bulk.state is BulkState.RUNNING]

    def _unstarted(
        self,
        name: str,
        which: Filter,
        last_seq: int,
        after: Cursor | None,
        most: Most,
    ) -> Found:
        """What was scheduled may have become ready since: so lanes come last."""
        queue = self._book.queues[name]
        lanes = [lane.place for lane in queue.all_lanes() if lane.place]
        return scanning.unstarted(
            self._store,
            name,
            which,
            (SCHEDULED, HELD, *lanes),
            last_seq=last_seq,
            after=after,
            most=most,
        )

    def _purge_page(self, bulk: Bulk) -> list[Command]:
        most = Most(bulk.page_jobs(), PAGE_ROWS)
        after = bulk.cursor
        found = self._unstarted(bulk.queue, bulk.filter, bulk.last_seq, after, most)
        if not found.is_end:
            return self._commands(bulk, found)
        has_met = bool(found.jobs) or (after is not None and after.has_met)
        # All in one page: nothing can have moved behind it.
        is_end = after is None or not has_met
        return self._commands(bulk, Found(found.jobs, None, is_end))

    def _dead_page(self, bulk: Bulk) -> list[Command]:
        after = START
        if bulk.cursor is not None:
            cursor = bulk.cursor
            after = Position(cursor.first, cursor.second, cursor.seq)
        before_ms = bulk.started_ms + 1
        if bulk.filter.died_before_ms is not None:
            before_ms = min(before_ms, bulk.filter.died_before_ms)
        which = msgspec.structs.replace(bulk.filter, died_before_ms=before_ms)
        most = Most(bulk.page_jobs(), PAGE_ROWS)
        return self._commands(
            bulk, scanning.dead(self._store, bulk.queue, which, after, most)
        )

    def _named_page(self, bulk: Bulk) -> list[Command]:
        """Jobs that were named one by one, in the order of their numbers."""
        done = 0 if bulk.cursor is None else bulk.cursor.seq
        left = sorted({seq for seq in bulk.filter.seqs or () if seq > done})
        page = left[: bulk.page_jobs()]
        jobs = scanning.dead_by_seq(self._store, bulk.queue, bulk.filter, page)
        cursor = Cursor(0, b"", 0, 0, page[-1] if page else done)
        found = Found(jobs, cursor, len(page) == len(left))
        return self._commands(bulk, found, len(page) - len(jobs))

    def _commands(self, bulk: Bulk, found: Found, missing: int = 0) -> list[Command]:
        book = self._book
        unread: list[Job] = [job for job in found.jobs if job.seq not in book.jobs]
        seqs = [job.seq for job in found.jobs]
        page = BulkPage(bulk.id, seqs, missing, found.cursor, found.is_end)
        return [Fetched(None, unread), page]
