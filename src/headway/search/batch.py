"""Many events at once: each job that they touch is read and written once.

Row by row SQLite would be stepped through Python's lock for every event.
"""

from array import array
from typing import Any, Final

import apsw

from headway.search import statements as sql
from headway.search.errors import NotUnderstood
from headway.search.happening import Lives
from headway.search.lives import Life, Told, life_of
from headway.search.puts import Puts
from headway.search.rows import NEW_GROUP, decode_labels, encode
from headway.search.tally import Groups, Tally

_NEW_GROUP: Final[int] = NEW_GROUP
_SOON: Final = 600
"""So many jobs that are done are written before more is read: what the processor has at
hand is soon less than a batch. In the order of their keys they fill pages well."""
Row = tuple[Any, ...]


class Batch:
    """Jobs as they stand after the events, and as they stood before."""

    def __init__(self, connection: apsw.Connection, groups: Groups) -> None:
        self._connection = connection
        self._groups = groups
        self._lives = Lives()
        self._tally = Tally()
        self._last: Life | None = None
        self._alike = 0
        self._plain = Puts(connection, sql.PUT_PLAIN, sql.PUT_MANY_PLAIN)
        self._others = Puts(connection, sql.PUT, sql.PUT_MANY)
        self._told = Puts(connection, sql.PUT_TOLD, sql.PUT_MANY_TOLD)
        self._labels: list[Row] = []
        self._moved: list[Row] = []
        self._handed: list[Row] = []
        self._failures: list[Row] = []
        self._keys_gone: list[Row] = []
        self._keys_come: list[Row] = []

    @property
    def last_seq(self) -> int:
        """The newest job that was not there before, as far as it is known by now."""
        return self._lives.last_seq

    def play(self, first: int, told: list[Told], raws: list[Any]) -> None:
        """Events that follow one another, the first with this number."""
        try:
            self._lives.play(first, told, raws)
        except (IndexError, KeyError, TypeError) as error:
            end = first + len(told) - 1
            raise NotUnderstood(f"one of the events {first} to {end}") from error
        if len(self._lives.done) >= _SOON:
            self._write_done()

    def write(self) -> Tally:
        """All that is not written yet."""
        self._write_done()
        self._finish_puts()
        self._read()
        for life in self._lives.in_order():
            self._write(life)
        self._count(None)
        self._finish()
        self._tally.write(self._connection, self._groups)
        return self._tally

    def _write_done(self) -> None:
        for life in self._lives.take_done():
            self._write(life)

    def _write(self, life: Life) -> None:
        if life.group_id == _NEW_GROUP:
            life.group_id = self._groups.of(life.queue, life.reason, life.error)
        if life.before is None:
            self._put(life)
        else:
            self._move(life)
        if life.told:
            self._told.put((life.seq, life.told[-1][0], encode(life.told)))

    def _read(self) -> None:
        """Jobs that were there before."""
        seqs = self._lives.wanted()
        if seqs:
            wanted = apsw.carray(array("q", seqs))
            by_seq = self._lives.by_seq
            for values in self._connection.execute(sql.JOBS, (wanted,)):
                life = life_of(values)
                by_seq[life.seq] = life
        self._lives.play_rest()

    def _put(self, life: Life) -> None:
        last = self._last
        if last is not None and _is_alike(life, last):
            self._alike += 1
        else:
            self._count(life)
        if life.is_plain:
            self._plain.put(life.plain_row())
            return
        self._others.put(life.row())
        if life.group_id:
            self._tally.groups[life.group_id] += 1
        if life.labels is not None:
            for name, value in decode_labels(life.labels).items():
                self._labels.append((name, value, life.seq))
        if life.reply_key:
            self._keys_come.append((life.queue, life.reply_key, life.seq))

    def _move(self, life: Life) -> None:
        assert life.before is not None
        tally = self._tally
        state, reply_key, worker, reason, error, group = life.before
        row = life.row()
        if life.worker == worker:
            self._moved.append((*row[sql.MOVED], life.seq))
        else:
            self._handed.append((*row[sql.HANDED], life.seq))
        if (life.reason, life.error, life.group_id) != (reason, error, group):
            self._failures.append((life.reason, life.error, life.group_id, life.seq))
        if life.reply_key != reply_key:
            if reply_key:
                self._keys_gone.append((life.queue, reply_key, life.seq))
            if life.reply_key:
                self._keys_come.append((life.queue, life.reply_key, life.seq))
        if life.state != state:
            tally.counts[life.queue, life.tenant, state, life.slo_ms] -= 1
            tally.counts[life.queue, life.tenant, life.state, life.slo_ms] += 1
        if life.group_id != group:
            if group:
                tally.groups[group] -= 1
            if life.group_id:
                tally.groups[life.group_id] += 1

    def _count(self, life: Life | None) -> None:
        """Those that are counted alike, and this is the first of others."""
        last = self._last
        if last is not None:
            name = (last.queue, last.tenant, last.state, last.slo_ms)
            self._tally.counts[name] += self._alike
        self._last = life
        self._alike = 1

    def _finish_puts(self) -> None:
        for puts in (self._plain, self._others, self._told):
            puts.finish()

    def _finish(self) -> None:
        self._finish_puts()
        for statement, rows in (
            (sql.PUT_LABEL, self._labels),
            (sql.MOVE, self._moved),
            (sql.HAND, self._handed),
            (sql.SET_FAILURE, self._failures),
            (sql.DROP_REPLY_KEY, self._keys_gone),
            (sql.PUT_REPLY_KEY, self._keys_come),
        ):
            if rows:
                self._connection.executemany(statement, rows)


def _is_alike(one: Life, other: Life) -> bool:
    """Both are counted as the same: most come after one of their own kind."""
    return (
        one.state == other.state
        and one.tenant == other.tenant
        and one.queue == other.queue
        and one.slo_ms == other.slo_ms
    )
