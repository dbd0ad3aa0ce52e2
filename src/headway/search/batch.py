"""Many events at once: each job that they touch is read and written once.

Row by row SQLite would be stepped through Python's lock for every event.
"""

from array import array
from collections import defaultdict
from collections.abc import Sequence

import apsw
from msgspec.structs import astuple

from headway.core.events import AnyEvent, Enqueued, Event, Extended
from headway.search import statements as sql
from headway.search.rows import (
    NEW_GROUP,
    JobRow,
    decode_labels,
    encode,
    move,
    new_row,
    row_in_the_middle,
)
from headway.search.tally import Groups, Tally

Before = tuple[int, str, str, str, str, int]
"""What a row was: state, reply key, worker, reason, error, group."""


class Batch:
    """Jobs as they stand after the events, and as they stood before."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._rows: dict[int, JobRow] = {}
        self._before: dict[int, Before] = {}
        self._told: defaultdict[int, list[tuple[int, Event]]] = defaultdict(list)
        self.last_seq = 0

    def play(self, first: int, events: Sequence[AnyEvent]) -> None:
        """Events that follow one another, the first with this number."""
        self._read(events)
        rows, told = self._rows, self._told
        for number, event in enumerate(events, first):
            if not isinstance(event, Event):
                continue
            seq = event.seq
            row = rows.get(seq)
            if row is None:
                if isinstance(event, Enqueued):
                    row = new_row(event)
                else:
                    row = row_in_the_middle(event)
                rows[seq] = row
                if seq > self.last_seq:
                    self.last_seq = seq
            move(row, event, number)
            if type(event) is not Extended:
                # A long job has thousands of heartbeats, and the row knows the last.
                told[seq].append((number, event))

    def write(self, groups: Groups) -> Tally:
        connection = self._connection
        rows = [row for _, row in sorted(self._rows.items())]
        for row in rows:
            if row.group_id == NEW_GROUP:
                row.group_id = groups.of(row)
        before = self._before
        fresh = [row for row in rows if row.seq not in before]
        if fresh:
            connection.executemany(sql.PUT, map(astuple, fresh))
            self._write_labels([row for row in fresh if row.labels is not None])
        old = [row for row in rows if row.seq in before]
        if old:
            self._write_old(old)
        self._write_reply_keys(rows)
        connection.executemany(
            sql.PUT_TOLD,
            [(seq, told[-1][0], encode(told)) for seq, told in self._told.items()],
        )
        tally = self._tally(rows)
        tally.write(connection, groups)
        return tally

    def _read(self, events: Sequence[AnyEvent]) -> None:
        """Jobs that were there before."""
        seqs = {event.seq for event in events if isinstance(event, Event)}
        seqs -= {event.seq for event in events if type(event) is Enqueued}
        seqs -= self._rows.keys()
        if not seqs:
            return
        wanted = apsw.carray(array("q", sorted(seqs)))
        for values in self._connection.execute(sql.JOBS, (wanted,)):
            row = JobRow(*values)
            self._rows[row.seq] = row
            self._before[row.seq] = (
                row.state,
                row.reply_key,
                row.worker,
                row.reason,
                row.error,
                row.group_id,
            )

    def _write_old(self, rows: list[JobRow]) -> None:
        execute = self._connection.executemany
        before = self._before
        moved = []
        handed = []
        for row in rows:
            if row.worker == before[row.seq][2]:
                moved.append((*astuple(row)[sql.MOVED], row.seq))
            else:
                handed.append((*astuple(row)[sql.HANDED], row.seq))
        execute(sql.MOVE, moved)
        execute(sql.HAND, handed)
        failures = [
            (row.reason, row.error, row.group_id, row.seq)
            for row in rows
            if (row.reason, row.error, row.group_id) != before[row.seq][3:]
        ]
        if failures:
            execute(sql.SET_FAILURE, failures)

    def _write_labels(self, rows: list[JobRow]) -> None:
        labels = [
            (*label, row.seq)
            for row in rows
            if row.labels is not None
            for label in decode_labels(row.labels).items()
        ]
        self._connection.executemany(sql.PUT_LABEL, labels)

    def _write_reply_keys(self, rows: list[JobRow]) -> None:
        gone = []
        come = []
        for row in rows:
            before = self._before.get(row.seq)
            old_key = "" if before is None else before[1]
            if row.reply_key != old_key:
                if old_key:
                    gone.append((row.queue, old_key, row.seq))
                if row.reply_key:
                    come.append((row.queue, row.reply_key, row.seq))
        self._connection.executemany(sql.DROP_REPLY_KEY, gone)
        self._connection.executemany(sql.PUT_REPLY_KEY, come)

    def _tally(self, rows: list[JobRow]) -> Tally:
        tally = Tally()
        counts, groups = tally.counts, tally.groups
        for row in rows:
            before = self._before.get(row.seq)
            state, group = row.state, row.group_id
            if before is None:
                counts[row.queue, row.tenant, state, row.slo_ms] += 1
                if group:
                    groups[group] += 1
                continue
            if before[0] != state:
                counts[row.queue, row.tenant, before[0], row.slo_ms] -= 1
                counts[row.queue, row.tenant, state, row.slo_ms] += 1
            if before[5] != group:
                if before[5]:
                    groups[before[5]] -= 1
                if group:
                    groups[group] += 1
        return tally
