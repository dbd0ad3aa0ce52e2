"""History for those who read it over HTTP, beside the owner and not in its way."""

from collections.abc import Callable
from contextlib import suppress
from threading import Lock

from headway.store import port
from headway.store.errors import HistoryGone, StoreError
from headway.store.port import Segment
from headway.wire.history import PartitionHistory


class Past:
    """Reads through a connection of its own; brief reads, one at a time."""

    def __init__(self, open_reader: Callable[[], port.Past], partition: str) -> None:
        self.partition = partition
        self._open_reader = open_reader
        self._reader: port.Past | None = None
        self._turn = Lock()

    def about(self) -> PartitionHistory:
        """Which events there are."""
        with self._turn:
            reader = self._opened()
            try:
                last = reader.last_segment()
                try:
                    first = reader.history(1, 1)[0].first if last else 1
                except HistoryGone as gone:
                    first = gone.oldest
            except StoreError:
                self._drop()
                raise
        if last is None:
            return PartitionHistory(self.partition, 1, 1, 0)
        return PartitionHistory(
            self.partition, first, last.first + last.count, last.at_ms
        )

    def page(self, first: int, most_bytes: int) -> list[Segment]:
        """Commits from the one that holds `first` on. Raises HistoryGone."""
        with self._turn:
            reader = self._opened()
            try:
                return reader.history(first, most_bytes)
            except HistoryGone:
                raise
            except StoreError:
                self._drop()
                raise

    def close(self) -> None:
        with self._turn:
            self._drop()

    def _opened(self) -> port.Past:
        if self._reader is None:
            self._reader = self._open_reader()
        return self._reader

    def _drop(self) -> None:
        """A failed read stops a reader for good: the next one is opened anew."""
        reader, self._reader = self._reader, None
        if reader is not None:
            with suppress(StoreError):
                reader.close()
