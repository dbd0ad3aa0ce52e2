"""Reading from the store what a partition is about to need."""

from collections.abc import Sequence
from typing import Final

from headway.core.book import Book, Near
from headway.core.bounds import Bounds
from headway.core.commands import (
    Cancel,
    Command,
    Enqueue,
    Fetched,
    Judge,
    Redrive,
    TakeIn,
)
from headway.core.errors import HistoryDropped, RuleBroken
from headway.core.job import Job
from headway.core.lane import Lane
from headway.core.memory import rows_max
from headway.core.turn import Turn, name_of
from headway.runtime.journal import Journal
from headway.runtime.records import unpack_chapter, unpack_rows
from headway.runtime.views import Explain, HistoryPage, ReadHistory, Show
from headway.store.errors import HistoryGone
from headway.store.port import SCHEDULED, START, Position, Store

TURNS_AT_ONCE: Final = 512
"""How many turns of a lane are read at one go."""
ROWS_AT_ONCE: Final = 1024
"""Jobs of one turn that are read at one go."""
SOURCES_AT_ONCE: Final = 64
"""Turns that are read on before what was read is decided upon."""


class Reading:
    """Knows how to get from the store what `Shared.reads` names."""

    def __init__(
        self, book: Book, store: Store, journal: Journal, bounds: Bounds
    ) -> None:
        self._book = book
        self._store = store
        self._journal = journal
        self._bounds = bounds

    def before(self, asks: Sequence[object]) -> list[Command]:
        """What the commands name and memory does not hold."""
        wanted: list[int] = []
        keys: list[tuple[str, str]] = []
        book = self._book
        for ask in asks:
            match ask:
                case Enqueue() | TakeIn():
                    keys += self._unknown_keys(ask)
                case (
                    Cancel(seq=seq)
                    | Redrive(seq=seq)
                    | Judge(seq=seq)
                    | Show(seq=seq)
                    | Explain(seq=seq)
                ):
                    if seq not in book.jobs and 0 < seq <= book.last_seq:
                        wanted.append(seq)
                case _:
                    pass
        if keys:
            for name, key, seq, digest, at_ms in self._store.find_keys(keys):
                book.queues[name].keys.restore(key, seq, digest, at_ms)
        if not wanted:
            return []
        return [Fetched(None, unpack_rows(self._store.jobs(wanted)))]

    def next(self) -> list[Command]:
        """Some of what is to be read."""
        found: list[Command] = []
        for source in list(self._book.shared.reads)[:SOURCES_AT_ONCE]:
            if isinstance(source, Turn):
                found.append(self._read_turn(source))
            elif isinstance(source, Lane):
                found.append(self._read_lane(source))
            else:
                assert isinstance(source, Near)
                found.append(self._read_near(source))
        return found

    def history(self, query: ReadHistory) -> HistoryPage | RuleBroken:
        """What happened from an event on; as much as was asked for, and no less than
        one commit if there is one.
        """
        first = max(query.first, 1)
        try:
            segments = self._store.history(first, query.most_bytes)
        except HistoryGone as error:
            return HistoryDropped(str(error))
        events = [
            event
            for segment in segments
            for event in unpack_chapter(segment.blob).events
        ]
        # The first commit may begin before what was asked for.
        skipped = first - segments[0].first if segments else 0
        return HistoryPage(first, events[skipped:])

    def heads(self, lane: Lane, most: int) -> list[Job]:
        """Of so many turns of a lane the first job, as it is written down."""
        number = self._journal.number_of(lane)
        return unpack_rows(self._store.turns(number, None, most, 1))

    def _read_turn(self, turn: Turn) -> Fetched:
        limit = max(2, min(ROWS_AT_ONCE, rows_max(self._book, self._bounds) // 2))
        lane = self._journal.number_of(turn.strand.lane)
        after = START if turn.cut is None else Position(*turn.cut)
        rows = self._store.rows(lane, name_of(turn), after, limit)
        return Fetched(turn, unpack_rows(rows), len(rows) < limit)

    def _read_lane(self, lane: Lane) -> Fetched:
        """The next turns of a lane; of each two jobs, or one where there are many."""
        turns_max = self._bounds.turns_max
        is_full = self._book.shared.turns > turns_max
        after, each = None, 1
        if lane.cold is not None:
            after = lane.cold.after
            each = 1 if is_full or lane.cold.is_many(turns_max) else 2
        number = self._journal.number_of(lane)
        rows = self._store.turns(number, after, TURNS_AT_ONCE, each)
        names = [row[2] for row in rows]
        is_end = len(set(names)) < TURNS_AT_ONCE
        return Fetched(lane, unpack_rows(rows), is_end, names, each, is_full)

    def _read_near(self, near: Near) -> Fetched:
        limit = self._bounds.scheduled_max // 2
        after = START if near.cut is None else Position(*near.cut)
        rows = self._store.rows(SCHEDULED, b"", after, limit)
        return Fetched(near, unpack_rows(rows), len(rows) < limit)

    def _unknown_keys(self, command: Enqueue | TakeIn) -> list[tuple[str, str]]:
        """Idempotency keys that memory does not hold may be in the store."""
        queue = self._book.queues.get(command.queue)
        if queue is None:
            return []
        return [
            (command.queue, spec.idempotency_key)
            for spec in command.specs
            if spec.idempotency_key is not None
            and not queue.keys.holds(spec.idempotency_key)
        ]
