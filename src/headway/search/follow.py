"""Reads history from a store into the index, beside the owner and not in its way.

Every read is brief, so that the owner's log can be cut off; the store is never opened
for writing. That history is kept until it is indexed, somebody else has to ask of the
owner, who hears how far the index is.
"""

import os
import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

import apsw

from headway.search.errors import NotIndexed
from headway.search.indexer import Indexer, digest_of
from headway.store.errors import HistoryGone
from headway.store.port import Past
from headway.store.sqlite.connections import open_for_reader
from headway.store.sqlite.reader import Reader, failure

BATCH_BYTES: Final = 1 << 22
"""History that is read at one go..."""
MORE_BYTES: Final = BATCH_BYTES * 7 // 8
"""...and where it was so much, the next commit did not fit in."""
FLOOD_BYTES: Final = 1 << 18
"""After a batch of more than this, more is waited for."""
IDLE_S: Final = 0.1
FLOOD_S: Final = 0.4
"""Jobs that come and go between two looks are written once: of those that live for 20 ms,
one in twenty is met twice, where ten looks a second meet one in five, and those take three
times as long."""
TELL_S: Final = 1.0
TIDY_EVENTS: Final = 1_000
"""For so many events one step is made to drop what is kept no longer."""


class Source(Protocol):
    """Where history is read from."""

    def look(self) -> Past | None:
        """None if nothing was written since the last look."""

    def look_again(self) -> None:
        """There is more than was read at the last look."""

    def close(self) -> None: ...


class FileSource:
    """The history of one store, whichever file that is at the moment."""

    def __init__(self, store: Path, indexer: Indexer) -> None:
        self._path = store
        self._indexer = indexer
        self._connection: apsw.Connection | None = None
        self._inode = 0
        self._version = -1

    def look(self) -> Past | None:
        inode = self._path.stat().st_ino
        if self._connection is None or inode != self._inode:
            self.close()
            self._connection = open_for_reader(self._path)
            self._inode = inode
            self._version = -1
            recognise(Reader(self._connection), self._indexer)
        try:
            version = int(self._connection.pragma("data_version"))
        except apsw.Error as error:
            raise failure(error) from error
        if version == self._version:
            return None
        self._version = version
        return Reader(self._connection)

    def look_again(self) -> None:
        self._version = -1

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class DatabaseSource:
    """The history of a partition in a database; every look is a question to it."""

    def __init__(self, address: str, partition: str, indexer: Indexer) -> None:
        self._address = address
        self._partition = partition
        self._indexer = indexer
        self._reader: Past | None = None

    def look(self) -> Past | None:
        if self._reader is None:
            from headway.store.postgres.reader import open_reader

            self._reader = open_reader(self._address, self._partition)
            recognise(self._reader, self._indexer)
        return self._reader

    def look_again(self) -> None:
        """It always does."""

    def close(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()


class Follower:
    """Feeds an index from a source, a batch at a time."""

    def __init__(self, source: Source, indexer: Indexer) -> None:
        self._source = source
        self._indexer = indexer
        self._is_untidy = True
        self._is_anew = False
        self.is_flooded = False
        """Whether so much happens that it is worth while to wait for more of it."""

    def step(self) -> bool:
        """Indexes what has happened; whether there is more to do at once."""
        indexer = self._indexer
        self.is_flooded = False
        if indexer.is_removed:
            raise NotIndexed("the index was removed while it was fed")
        reader = self._source.look()
        if reader is None:
            self._tidy(1)
            return self._is_untidy
        try:
            segments = reader.history(indexer.place.next, BATCH_BYTES)
        except HistoryGone as gone:
            indexer.skip_to(gone.oldest)
            self._source.look_again()
            return True
        if segments:
            # There may be more than fits in a batch, and nothing written after it.
            self._source.look_again()
        try:
            count = indexer.apply(segments)
        except apsw.ConstraintError:
            if self._is_anew:
                raise
            # A job that came twice: it was of another history after all.
            self._is_anew = True
            indexer.begin_anew()
            return True
        self._is_untidy = True
        self._tidy(1 + count // TIDY_EVENTS)
        size = sum(len(segment.blob) for segment in segments)
        self.is_flooded = size > FLOOD_BYTES
        return size > MORE_BYTES

    def close(self) -> None:
        self._source.close()

    def _tidy(self, steps: int) -> None:
        while self._is_untidy and steps:
            self._is_untidy = self._indexer.tidy() > 0
            steps -= 1


def recognise(reader: Past, indexer: Indexer) -> None:
    """If the store is not the one that was indexed, the index begins anew."""
    place = indexer.place
    if place.next == 1:
        return
    last = reader.last_segment()
    is_known = (
        last is not None
        and last.first + last.count >= place.next
        and last.at_ms >= place.at_ms
    )
    if is_known and place.segment:
        try:
            (same, *_) = reader.history(place.segment, 1)
            is_known = digest_of(same) == place.digest
        except HistoryGone as gone:
            # Dropped, and nobody can tell any more; but time does not go back.
            (oldest, *_) = reader.history(gone.oldest, 1)
            is_known = oldest.at_ms >= place.at_ms
    if not is_known:
        indexer.begin_anew()


def follow(
    source: Source,
    indexer: Indexer,
    tell: Callable[[Indexer], None],
    is_over: Callable[[float], bool],
) -> None:
    """Until `is_over`, which waits so many seconds at most; tells how far it is."""
    follower = Follower(source, indexer)
    told_s, told = 0.0, 0
    try:
        pause_s = 0.0
        while not is_over(pause_s):
            began_s = time.monotonic()
            is_more = follower.step()
            pause_s = FLOOD_S if follower.is_flooded else IDLE_S
            if is_more:
                # Half the time it rests: what it writes is flushed by the same disk
                # that others wait for.
                pause_s = time.monotonic() - began_s
            if indexer.place.next != told and time.monotonic() - told_s >= TELL_S:
                told_s, told = time.monotonic(), indexer.place.next
                tell(indexer)
    finally:
        follower.close()


class Lifeline:
    """The process that started this one: it holds our input open while it lives."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._parent = os.getppid()

    def is_cut(self, wait_s: float) -> bool:
        """Whether it is gone by the end of the wait; what it says is of no matter."""
        readable, _, _ = select.select([self._descriptor], [], [], wait_s)
        if readable and not os.read(self._descriptor, 4_096):
            return True
        return os.getppid() != self._parent
