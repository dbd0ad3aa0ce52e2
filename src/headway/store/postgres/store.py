"""The store of a partition in a PostgreSQL database, written by one owner."""

import time
from secrets import token_hex
from typing import Any, Final, NoReturn

import psycopg

from headway.store.errors import Contradiction, Fenced, StoreError
from headway.store.port import Batch
from headway.store.postgres import migrations
from headway.store.postgres import statements as sql
from headway.store.postgres.arrays import know_arrays
from headway.store.postgres.connections import connect, refuse_careless
from headway.store.postgres.reader import Reader, discard
from headway.store.postgres.writes import values_of

FENCED: Final = "HW001"
CONTRADICTION: Final = "HW002"
PART_EVENTS: Final = 1 << 20
"""How many numbers of history one table holds."""
DROP_AGAIN_S: Final = 60.0
"""After a table could not be dropped since somebody reads, it is tried again so late."""


class PostgresStore(Reader):
    """Connects in take_over. After a failure only connecting anew tells what is there.

    A commit is one call of one function: it is a transaction by itself, and no state of
    the session is needed for it.
    """

    def __init__(
        self,
        address: str,
        partition: str = "p1",
        owner: str = "",
        *,
        is_again: bool = False,
        part_events: int = PART_EVENTS,
    ) -> None:
        """`owner` names whoever takes over; again only if nobody else has meanwhile."""
        super().__init__()
        self._owner = owner or token_hex(8)
        self._is_again = is_again
        self._address = address
        self._name = partition
        self._part_events = part_events
        self._is_closed = False
        self._epoch = 0
        self._next = 1
        """The number that history goes on with."""
        self._part = -1
        """The newest table of history that is there."""
        self._drop_at_s = 0.0

    @property
    def id(self) -> int:
        """The number that the partition has in the database."""
        return self._partition

    def take_over(self) -> int:
        with self._turn:
            if self._failure is not None or self._is_closed:
                self._opened()
            if self._connection is None:
                self._connection = self._connect()
            connection = self._opened()
            try:
                found = self._raise_epoch(connection)
                last = connection.execute(sql.LAST_SEGMENT, (found[0],)).fetchone()
                self._next = 1 if last is None else last[0] + last[1]
                part = connection.execute(sql.PARTS, (found[0],)).fetchone()[0]
                self._part = -1 if part is None else part
            except psycopg.Error as error:
                raise self._fail(error) from error
            return self._epoch

    def commit(self, batch: Batch, epoch: int) -> None:
        with self._turn:
            connection = self._opened()
            segment = batch.segment
            if segment is not None:
                self._expect(segment.first, segment.count, epoch)
            try:
                if segment is not None and self._part_of(segment.first) > self._part:
                    self._make_part(connection, segment.first)
                values = (self._partition, epoch, *values_of(batch))
                connection.execute(sql.COMMIT, values, binary=True)
            except psycopg.Error as error:
                self._abandon(error, epoch)
            if segment is not None:
                self._next = segment.first + segment.count
            if batch.history_before is not None:
                self._drop_parts(connection, epoch)

    def close(self) -> None:
        self._is_closed = True
        super().close()

    def _raise_epoch(self, connection: Any) -> tuple[int, int]:
        values = (self._owner, self._name, self._owner, self._is_again)
        found = connection.execute(sql.TAKE_OVER, values).fetchone()
        if found is None:
            newest = connection.execute(sql.EPOCH, (self._name,)).fetchone()
            raise Fenced(self._epoch, newest[0])
        self._partition, self._epoch = found
        return self._partition, self._epoch

    def _connect(self) -> Any:
        connection = connect(self._address)
        try:
            refuse_careless(connection)
            migrations.check(connection)
            connection.execute(sql.KNOW, (self._name,))
            know_arrays(connection)
        except psycopg.Error as error:
            discard(connection)
            raise self._fail(error) from error
        except StoreError:
            discard(connection)
            raise
        return connection

    def _expect(self, first: int, count: int, epoch: int) -> None:
        """Whoever has been replaced is told so first."""
        if epoch == self._epoch and (first != self._next or count < 1):
            raise Contradiction(f"history can't go on with number {first}")

    def _part_of(self, number: int) -> int:
        return number // self._part_events

    def _make_part(self, connection: Any, first: int) -> None:
        number = self._part_of(first)
        values = (self._partition, number, self._part_events)
        connection.execute(sql.MAKE_PART, values)
        self._part = number

    def _drop_parts(self, connection: Any, epoch: int) -> None:
        """What is before the beginning of history goes a table at a time.

        The commit is durable, whatever happens here: the next call will say so.
        """
        if time.monotonic() < self._drop_at_s:
            return
        try:
            values = (self._partition, epoch, self._part_events)
            while connection.execute(sql.DROP_PART, values).fetchone()[0]:
                pass
        except psycopg.errors.LockNotAvailable:
            self._drop_at_s = time.monotonic() + DROP_AGAIN_S
        except psycopg.Error as error:
            self._fail(error)

    def _abandon(self, error: psycopg.Error, epoch: int) -> NoReturn:
        """The server says that nothing was written, or nobody knows: then it stops."""
        is_alive = not self._opened().broken
        match error.sqlstate:
            case "HW001" if is_alive:
                raise Fenced(epoch, int(error.diag.message_detail or 0)) from error
            case "HW002" if is_alive:
                raise Contradiction(str(error.diag.message_primary)) from error
            case "23505" | "23514" | "23502" | "22003" if is_alive:
                raise Contradiction(str(error.diag.message_primary)) from error
        raise self._fail(error) from error
