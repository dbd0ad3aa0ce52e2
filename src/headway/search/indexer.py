"""Feeds the index: events go in by their numbers, each of them once.

How far it is, is written with what was indexed, in one transaction.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple

from headway.core.events import AnyEvent
from headway.runtime.records import unpack_chapter
from headway.runtime.views import HistoryPage
from headway.search import keep as keeping
from headway.search import schema
from headway.search import statements as sql
from headway.search.batch import Batch
from headway.search.errors import OutOfOrder
from headway.search.keep import Keep
from headway.search.rows import ENDED
from headway.search.tally import Groups, Tally
from headway.store.port import Segment

MARK_MS: Final = 1_000
"""So far apart are the marks by which a time is found in the order of events."""
DIGEST_BYTES: Final = 16


class Place(NamedTuple):
    """How far the index is."""

    next: int
    """The first event that is not in it."""
    at_ms: int
    """When the last one happened."""
    seq: int
    """The newest job."""
    segment: int
    """First event of the last commit, 0 if it was not told by commits; a reader that
    keeps history from here on can be recognised."""
    digest: bytes
    """Of that commit."""


class Indexer:
    """The one writer of an index."""

    def __init__(self, path: Path, keep: Keep | None = None) -> None:
        self.keep = keep or Keep()
        self._path = path
        self._connection = schema.open_for_indexer(path)
        self._inode = path.stat().st_ino
        self._load()

    @property
    def is_removed(self) -> bool:
        """Its file is not there any more, or another one: this one nobody will read."""
        try:
            return self._path.stat().st_ino != self._inode
        except FileNotFoundError:
            return True

    def apply(self, segments: Sequence[Segment]) -> int:
        """Commits of history, in one transaction; answers how many events were new."""
        chapters = [(one.first, unpack_chapter(one.blob).events) for one in segments]
        if not segments:
            return 0
        last = segments[-1]
        return self._apply(chapters, last.first, digest_of(last))

    def apply_page(self, page: HistoryPage) -> int:
        """The same for history as an owner tells it."""
        return self._apply([(page.first, page.events)], 0, b"")

    def skip_to(self, number: int) -> None:
        """Events before this one are not to be had any more: marks the gap."""
        place = self.place
        if number <= place.next:
            return

        def write() -> None:
            gap = (place.next, number, place.at_ms)
            self._connection.execute(sql.PUT_GAP, gap)
            self._set_place(place._replace(next=number, segment=0, digest=b""))

        self._whole(write)

    def tidy(self) -> int:
        """Drops some of what is kept no longer; answers how many jobs that were."""
        connection, now_ms = self._connection, self.place.at_ms
        seqs = keeping.too_old(connection, self.keep, now_ms)
        if not seqs and self._ended > self.keep.ended_max:
            seqs = keeping.too_many(connection, self._ended - self.keep.ended_max)
        if not seqs:
            return 0

        def write() -> None:
            self._count(keeping.drop(connection, self._groups, seqs))
            oldest_ms = now_ms - max(self.keep.age_ms, self.keep.dead_age_ms)
            connection.execute(sql.DROP_MARKS, (oldest_ms, keeping.ROWS_AT_ONCE))

        self._whole(write)
        return len(seqs)

    def begin_anew(self) -> None:
        """Forgets everything: it was of another history."""
        schema.make(self._connection)
        self._load()

    def close(self) -> None:
        self._connection.close()

    def _load(self) -> None:
        execute = self._connection.execute
        self.place = Place(*execute(sql.PLACE).get)
        self._groups = Groups(self._connection)
        self._mark_ms: int = execute(sql.LAST_MARK).get or -MARK_MS
        self._ended: int = execute(sql.ENDED, ENDED).get or 0

    def _apply(
        self,
        chapters: Sequence[tuple[int, list[AnyEvent]]],
        segment: int,
        digest: bytes,
    ) -> int:
        place = self.place
        batch = Batch(self._connection)
        next_event, at_ms = place.next, place.at_ms
        marks = []

        def write() -> None:
            nonlocal next_event, at_ms
            for first, events in chapters:
                if first > next_event:
                    raise OutOfOrder(f"event {first} comes after {next_event - 1}")
                new = events[next_event - first :]
                if not new:
                    continue
                if new[0].at_ms >= self._mark_ms + MARK_MS:
                    self._mark_ms = new[0].at_ms
                    last_seq = max(place.seq, batch.last_seq)
                    marks.append((self._mark_ms, next_event, last_seq))
                batch.play(next_event, new)
                next_event += len(new)
                at_ms = new[-1].at_ms
            if next_event == place.next:
                return
            tally = batch.write(self._groups)
            self._connection.executemany(sql.PUT_MARK, marks)
            seq = max(place.seq, batch.last_seq)
            self._set_place(Place(next_event, at_ms, seq, segment, digest))
            self._count(tally)

        self._whole(write)
        return next_event - place.next

    def _count(self, tally: Tally) -> None:
        self._ended += tally.ended

    def _set_place(self, place: Place) -> None:
        self._connection.execute(sql.SET_PLACE, place)
        self.place = place

    def _whole(self, write: Callable[[], None]) -> None:
        """All of it or nothing; what was remembered is read again after a failure."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            if self._connection.execute(sql.PLACE).get != self.place:
                raise OutOfOrder("another process feeds the index as well")
            write()
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self._load()
            raise


def digest_of(segment: Segment) -> bytes:
    """By this a commit is known again."""
    text = b"%d %d %d " % segment[:3]
    return blake2b(text + segment.blob, digest_size=DIGEST_BYTES).digest()
