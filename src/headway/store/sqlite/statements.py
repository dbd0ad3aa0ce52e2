"""Every statement of the store, by name. Values are always bound.

Not one of them scans or sorts a table, however many jobs there are; a test reads their
query plans.
"""

from typing import Final

BODY_INLINE_BYTES: Final = 1024
"""A larger body lies apart, so that a move need not rewrite it."""

_BODY: Final = """
    coalesce(jobs.body, (SELECT bodies.body FROM bodies WHERE bodies.seq = jobs.seq))"""
ROW: Final = f"jobs.seq, lane, turn, first, second, change, {_BODY}"
"""A job that is not held, or stands with the held in its own row."""
ANY_ROW: Final = f"""jobs.seq, iif(held.seq IS NULL, lane, -1),
    iif(held.seq IS NULL, turn, x''), iif(held.seq IS NULL, first, 0),
    iif(held.seq IS NULL, second, 0),
    iif(held.seq IS NULL, jobs.change, held.change), {_BODY}"""
ALL_JOBS: Final = "jobs LEFT JOIN held ON held.seq = jobs.seq"
_IS_FREE: Final = "jobs.seq NOT IN (SELECT seq FROM held)"
"""It stands where its row says."""

EPOCH: Final = "SELECT value FROM meta WHERE name = 'epoch'"
RAISE_EPOCH: Final = "UPDATE meta SET value = value + 1 WHERE name = 'epoch'"

PUT: Final = "INSERT INTO jobs VALUES(?, ?, ?, ?, ?, ?, ?)"
PUT_BODY: Final = "INSERT INTO bodies VALUES(?, ?)"
MOVE: Final = """UPDATE jobs
    SET lane = ?, turn = ?, first = ?, second = ?, change = ? WHERE seq = ?"""
# Writes nothing where there is no such job.
HOLD: Final = """INSERT INTO held SELECT seq, ?2 FROM jobs WHERE seq = ?1
    ON CONFLICT(seq) DO UPDATE SET change = excluded.change"""
SOME_HELD: Final = "SELECT seq FROM held WHERE seq BETWEEN ? AND ? LIMIT ?"
LET_GO: Final = "DELETE FROM held WHERE seq IN carray(?)"
END: Final = "DELETE FROM jobs WHERE seq IN carray(?)"
ANY_BODY: Final = "SELECT EXISTS(SELECT 1 FROM bodies)"
END_BODY: Final = "DELETE FROM bodies WHERE seq IN carray(?)"

# The tables of jobs hear of these later.
PEND: Final = "INSERT INTO pending VALUES(?, ?)"
PENDING: Final = "SELECT number, blob FROM pending ORDER BY number"
SORTED_IN: Final = "DELETE FROM pending WHERE number <= ?"
LAST_JOB: Final = """SELECT max(coalesce((SELECT max(seq) FROM jobs), 0),
    coalesce((SELECT last FROM bundles ORDER BY seq DESC LIMIT 1), 0))"""
LAST_ROW: Final = "SELECT max(seq) FROM jobs"
JOBS_AMONG: Final = "SELECT count(*) FROM jobs WHERE seq IN carray(?)"

PUT_FACT: Final = "INSERT OR REPLACE INTO facts VALUES(?, ?, ?)"
FORGET_FACT: Final = "DELETE FROM facts WHERE kind = ? AND key = ?"

PUT_KEY: Final = """INSERT INTO keys(queue, key, seq, fingerprint, at_ms)
    VALUES(?, ?, ?, ?, ?)
    ON CONFLICT(queue, key) DO UPDATE SET
    seq = excluded.seq, fingerprint = excluded.fingerprint, at_ms = excluded.at_ms"""
FORGET_KEYS: Final = "DELETE FROM keys WHERE at_ms < ?"

# Writes nothing unless the numbers go on where they ended; they begin with 1.
APPEND: Final = """INSERT INTO history SELECT ?1, ?2, ?3, ?4 WHERE ?1 = coalesce(
    (SELECT first + count FROM history ORDER BY first DESC LIMIT 1), 1)"""
# A segment ends where the next begins. The newest has no next and stays: it remembers
# the number to go on with.
DROP_HISTORY: Final = """DELETE FROM history WHERE first < (
    SELECT first FROM history WHERE first <= ? ORDER BY first DESC LIMIT 1)"""

PUT_RESULT: Final = "INSERT INTO results VALUES(?, ?, ?)"
# By the index alone: what is to be deleted is known before anything of it is read.
DROP_RESULTS: Final = """DELETE FROM results WHERE seq IN (
    SELECT seq FROM results WHERE until_ms <= ? ORDER BY until_ms, seq LIMIT ?)"""
RESULTS: Final = "SELECT seq, until_ms, blob FROM results WHERE seq IN carray(?)"
FIRST_OVER: Final = "SELECT until_ms FROM results ORDER BY until_ms LIMIT 1"

FACTS: Final = "SELECT key, value FROM facts WHERE kind = ? ORDER BY key"
JOBS: Final = f"SELECT {ANY_ROW} FROM {ALL_JOBS} WHERE jobs.seq IN carray(?)"  # noqa: S608
FIND_KEY: Final = """SELECT queue, key, seq, fingerprint, at_ms FROM keys
    WHERE queue = ? AND key = ?"""

# The rows of a turn behind one: three ranges, one after the other. One comparison of
# (first, second, seq) reads all rows of equal first and second before it comes to seq:
# measured, 23 ms in place of 0.1 ms for the last of 200,000 ties. Merged in one
# statement, 16 rows take twice as long as in three.
ROWS_OF_SECOND: Final = f"""SELECT {ROW} FROM jobs
    WHERE lane = ?1 AND turn = ?2 AND first = ?3 AND second = ?4 AND seq > ?5
    AND {_IS_FREE}
    ORDER BY jobs.seq LIMIT ?6"""  # noqa: S608
ROWS_OF_FIRST: Final = f"""SELECT {ROW} FROM jobs
    WHERE lane = ?1 AND turn = ?2 AND first = ?3 AND second > ?4
    AND {_IS_FREE}
    ORDER BY second, jobs.seq LIMIT ?5"""  # noqa: S608
ROWS: Final = f"""SELECT {ROW} FROM jobs
    WHERE lane = ?1 AND turn = ?2 AND first > ?3
    AND {_IS_FREE}
    ORDER BY first, second, jobs.seq LIMIT ?4"""  # noqa: S608
HELD: Final = "SELECT seq FROM held WHERE seq > ? ORDER BY seq LIMIT ?"

# A skip scan: one step down the index for a turn, however many rows it has.
TURNS: Final = f"""
    WITH RECURSIVE names(turn, number) AS (
        SELECT (SELECT turn FROM jobs WHERE lane = ?1 AND turn > ?2 AND {_IS_FREE}
                ORDER BY turn LIMIT 1), 1
        UNION ALL
        SELECT (SELECT turn FROM jobs WHERE lane = ?1 AND turn > names.turn
                AND {_IS_FREE} ORDER BY turn LIMIT 1), number + 1
        FROM names WHERE names.turn IS NOT NULL AND number < ?3
    )
    SELECT {ROW.replace("turn", "jobs.turn")} FROM names CROSS JOIN jobs
    WHERE jobs.seq IN (
        SELECT seq FROM jobs WHERE lane = ?1 AND turn = names.turn AND {_IS_FREE}
        ORDER BY first, second, seq LIMIT ?4)"""  # noqa: S608
# The same where one row of each is enough: where a turn begins, its first row is found.
HEADS: Final = f"""
    WITH RECURSIVE heads(seq, lane, turn, first, second, change, body, number) AS (
        SELECT *, 1 FROM jobs WHERE seq = (
            SELECT seq FROM jobs WHERE lane = ?1 AND turn > ?2 AND {_IS_FREE}
            ORDER BY turn, first, second, seq LIMIT 1)
        UNION ALL
        SELECT jobs.*, number + 1 FROM heads CROSS JOIN jobs
        WHERE number < ?3 AND jobs.seq = (
            SELECT seq FROM jobs WHERE lane = ?1 AND turn > heads.turn AND {_IS_FREE}
            ORDER BY turn, first, second, seq LIMIT 1)
    )
    SELECT seq, lane, turn, first, second, change, {_BODY.replace("jobs.", "heads.")}
    FROM heads"""  # noqa: S608
BEFORE_ALL_TURNS: Final = ""
"""Text: SQLite orders it before every blob, the empty one included."""

OLDEST: Final = "SELECT first FROM history ORDER BY first LIMIT 1"
HISTORY: Final = """SELECT first, count, at_ms, blob FROM history
    WHERE first >= (SELECT first FROM history WHERE first <= ?
                    ORDER BY first DESC LIMIT 1)
    ORDER BY first"""
LAST_SEGMENT: Final = """SELECT first, count, at_ms, blob FROM history
    ORDER BY first DESC LIMIT 1"""
