"""Feeds the index: events go in by their numbers, each of them once.

How far it is, is written with what was indexed, in one transaction.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple

from headway.runtime.forms import Chapter
from headway.runtime.views import HistoryPage
from headway.search import keep as keeping
from headway.search import schema
from headway.search import statements as sql
from headway.search.batch import Batch
from headway.search.errors import OutOfOrder
from headway.search.keep import Keep
from headway.search.lives import AT_MS
from headway.search.rows import ENDED, encode, unpack_both
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
        if not segments:
            return 0
        last = segments[-1]
        return self._apply(segments, last.first, digest_of(last))

    def apply_page(self, page: HistoryPage) -> int:
        """The same for history as an owner tells it."""
        blob = encode(Chapter(0, {}, page.events))
        segment = Segment(page.first, len(page.events), 0, blob)
        return self._apply([segment], 0, b"")

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

    def _apply(self, segments: Sequence[Segment], known: int, digest: bytes) -> int:
        """`known` is the first event of the last commit, by which it is known again."""
        place = self.place
        batch = Batch(self._connection, self._groups)
        next_event, at_ms = place.next, place.at_ms
        marks = []

        def write() -> None:
            nonlocal next_event, at_ms
            for segment in segments:
                skipped = next_event - segment.first
                if skipped < 0:
                    raise OutOfOrder(
                        f"event {segment.first} comes after {next_event - 1}"
                    )
                # One after the other, so that few events are there at any moment.
                told, raws = unpack_both(segment.blob)
                if skipped:
                    told, raws = told[skipped:], raws[skipped:]
                if not told:
                    continue
                first_ms = told[0][AT_MS]
                if first_ms >= self._mark_ms + MARK_MS:
                    self._mark_ms = first_ms
                    last_seq = max(place.seq, batch.last_seq)
                    marks.append((first_ms, next_event, last_seq))
                batch.play(next_event, told, raws)
                next_event += len(told)
                at_ms = told[-1][AT_MS]
            if next_event == place.next:
                return
            tally = batch.write()
            self._connection.executemany(sql.PUT_MARK, marks)
            seq = max(place.seq, batch.last_seq)
            self._set_place(Place(next_event, at_ms, seq, known, digest))
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
