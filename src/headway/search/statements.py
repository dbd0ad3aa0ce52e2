"""Every statement that feeds the index, by name. Values are always bound."""

from typing import Final

from headway.search.rows import DONE, JobRow

COLUMNS: Final = ", ".join(f"jobs.{name}" for name in JobRow.__struct_fields__)
_MARKS: Final = ",".join("?" for _ in JobRow.__struct_fields__)
_ALIKE: Final = {
    "labels": "NULL",
    "generation": "0",
    "state": str(DONE),
    "lease_until_ms": "0",
    "is_cancel_requested": "0",
    "reply_key": "''",
    "reason": "''",
    "error": "''",
    "group_id": "0",
}
"""What jobs have in common that are simply done..."""
_SAME: Final = {"run_at_ms": "enqueued_ms", "ended_ms": "changed_ms"}
"""...and what is the same twice. Neither is bound for each of them."""
ROWS: Final = 60
"""Rows that one statement puts in, if there are so many. A statement that begins anew
for each opens its trees anew: one job took 4.0 us in place of 2.7."""


def _many(table: str, rows: list[str]) -> str:
    # A statement is looked up by its text each time: that is as short as can be.
    # What fails is undone as a whole, with its transaction: there is no need to note
    # down what each statement changes.
    return f"INSERT OR FAIL INTO {table} VALUES{','.join(rows)}"


def _plain(count: int) -> list[str]:
    """Rows of jobs that are simply done."""
    names = JobRow.__struct_fields__
    bound = [name for name in names if name not in _ALIKE and name not in _SAME]
    rows = []
    for row in range(count):
        numbers = {name: row * len(bound) + n for n, name in enumerate(bound, 1)}
        marks = {name: f"?{numbers[of]}" for name, of in _SAME.items()} | _ALIKE
        rows.append(f"({','.join(marks.get(name, '?') for name in names)})")
    return rows


PLACE: Final = "SELECT next, at_ms, seq, segment, digest FROM place"
CURSOR_KEY: Final = "SELECT cursor_key FROM place"
SET_PLACE: Final = """UPDATE place
    SET next = ?, at_ms = ?, seq = ?, segment = ?, digest = ?"""
PUT_GAP: Final = "INSERT OR REPLACE INTO gaps VALUES(?, ?, ?)"
LAST_GAP: Final = "SELECT next FROM gaps ORDER BY first DESC LIMIT 1"
GAPS: Final = "SELECT first, next, at_ms FROM gaps ORDER BY first DESC LIMIT ?"
LAST_MARK: Final = "SELECT at_ms FROM marks ORDER BY at_ms DESC LIMIT 1"
PUT_MARK: Final = "INSERT OR IGNORE INTO marks VALUES(?, ?, ?)"
DROP_MARKS: Final = """DELETE FROM marks WHERE at_ms IN (
    SELECT at_ms FROM marks WHERE at_ms < ? ORDER BY at_ms LIMIT ?)"""

JOBS: Final = f"SELECT {COLUMNS} FROM jobs WHERE seq IN carray(?)"  # noqa: S608
PUT: Final = f"INSERT INTO jobs VALUES({_MARKS})"
PUT_MANY: Final = _many("jobs", [f"({_MARKS})"] * ROWS)
PUT_PLAIN: Final = _many("jobs", _plain(1))
PUT_MANY_PLAIN: Final = _many("jobs", _plain(ROWS))
# Apart from one another, so that a move leaves alone the indexes of what stays.
_MOVE: Final = """UPDATE jobs SET generation = ?, state = ?, changed = ?,
    changed_ms = ?, run_at_ms = ?, ended_ms = ?, attempt = ?, lease_until_ms = ?,
    is_cancel_requested = ?, reply_key = ?"""
MOVE: Final = f"{_MOVE} WHERE seq = ?"
MOVED: Final = slice(9, 19)
"""The fields that a move sets."""
HAND: Final = f"{_MOVE}, worker = ? WHERE seq = ?"
HANDED: Final = slice(9, 20)
"""The same with the worker."""
SET_FAILURE: Final = "UPDATE jobs SET reason = ?, error = ?, group_id = ? WHERE seq = ?"
DROPPED: Final = """SELECT queue, tenant, state, slo_ms, group_id, seq, labels, reply_key
    FROM jobs WHERE seq IN carray(?)"""
DROP: Final = "DELETE FROM jobs WHERE seq IN carray(?)"

PUT_LABEL: Final = "INSERT OR IGNORE INTO labels VALUES(?, ?, ?)"
DROP_LABEL: Final = "DELETE FROM labels WHERE name = ? AND value = ? AND seq = ?"
PUT_TOLD: Final = "INSERT INTO events VALUES(?, ?, ?)"
PUT_MANY_TOLD: Final = _many("events", ["(?,?,?)"] * ROWS)
DROP_TOLD: Final = "DELETE FROM events WHERE seq IN carray(?)"
PUT_REPLY_KEY: Final = "INSERT OR IGNORE INTO reply_keys VALUES(?, ?, ?)"
DROP_REPLY_KEY: Final = "DELETE FROM reply_keys WHERE queue = ? AND key = ? AND seq = ?"

COUNT: Final = """INSERT INTO counts VALUES(?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET n = n + excluded.n"""
FORGET_COUNT: Final = """DELETE FROM counts
    WHERE queue = ? AND tenant = ? AND state = ? AND slo_ms = ? AND n = 0"""
COUNT_LANE: Final = """INSERT INTO lanes VALUES(?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET n = n + excluded.n"""
FORGET_LANE: Final = """DELETE FROM lanes
    WHERE queue = ? AND slo_ms = ? AND state = ? AND n = 0"""

FIND_GROUP: Final = "SELECT id FROM groups WHERE queue = ? AND reason = ? AND line = ?"
GROUPS_OF: Final = "SELECT count(*) FROM groups WHERE queue = ?"
PUT_GROUP: Final = "INSERT INTO groups(queue, reason, line, n) VALUES(?, ?, ?, 0)"
COUNT_GROUP: Final = "UPDATE groups SET n = n + ? WHERE id = ?"
FORGET_GROUP: Final = "DELETE FROM groups WHERE id = ? AND n = 0"

ENDED: Final = "SELECT sum(n) FROM lanes WHERE state IN (?, ?, ?)"
OLDEST: Final = """SELECT seq, changed, changed_ms FROM jobs INDEXED BY jobs_by_state
    WHERE state = ? ORDER BY changed LIMIT ?"""
