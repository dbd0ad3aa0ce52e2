"""The statements of bundles, by name; what `statements.py` says of itself holds here."""

from typing import Final

PUT_BUNDLE: Final = "INSERT INTO bundles VALUES(?, ?, ?, ?, ?, ?, ?, ?)"
LAST_BUNDLED: Final = "SELECT last FROM bundles ORDER BY seq DESC LIMIT 1"
TAIL: Final = """SELECT second FROM bundles WHERE lane = ? AND turn = ? AND first = ?
    ORDER BY second DESC LIMIT 1"""

# Those that end behind a position, in three ranges as with rows; the first of them may
# begin before it.
_THINNED: Final = """EXISTS(SELECT 1 FROM gone WHERE bundle = bundles.seq)
    OR EXISTS(SELECT 1 FROM held WHERE held.seq BETWEEN bundles.seq AND bundles.last)"""
_FOUND: Final = f"SELECT seq, first, {_THINNED}, blob FROM bundles"  # noqa: S608
BUNDLES_OF_SECOND: Final = f"""{_FOUND}
    WHERE lane = ?1 AND turn = ?2 AND first = ?3 AND second = ?4 AND seq >= coalesce(
        (SELECT max(seq) FROM bundles WHERE lane = ?1 AND turn = ?2 AND first = ?3
         AND second = ?4 AND seq <= ?5), ?5) AND last > ?5
    ORDER BY seq"""  # noqa: S608
BUNDLES_OF_FIRST: Final = f"""{_FOUND}
    WHERE lane = ?1 AND turn = ?2 AND first = ?3 AND second > ?4
    ORDER BY second, seq"""
BUNDLES: Final = f"""{_FOUND}
    WHERE lane = ?1 AND turn = ?2 AND first > ?3
    ORDER BY first, second, seq"""
NAMES: Final = """
    WITH RECURSIVE names(turn, number) AS (
        SELECT (SELECT turn FROM bundles WHERE lane = ?1 AND turn > ?2
                ORDER BY turn LIMIT 1), 1
        UNION ALL
        SELECT (SELECT turn FROM bundles WHERE lane = ?1 AND turn > names.turn
                ORDER BY turn LIMIT 1), number + 1
        FROM names WHERE names.turn IS NOT NULL AND number < ?3
    )
    SELECT turn FROM names"""

# The one bundle in which a job may be.
BUNDLE_BEFORE: Final = """SELECT value, (SELECT bundles.seq FROM bundles
    WHERE bundles.seq <= carray.value ORDER BY bundles.seq DESC LIMIT 1)
    FROM carray(?)"""
BUNDLES_AMONG: Final = """SELECT seq, lane, turn, first, last, blob FROM bundles
    WHERE seq IN carray(?)"""
HELD_BETWEEN: Final = "SELECT seq, change FROM held WHERE seq BETWEEN ? AND ?"
HOLD_MEMBER: Final = """INSERT INTO held VALUES(?, ?)
    ON CONFLICT(seq) DO UPDATE SET change = excluded.change"""

# Without a look at the blob, which comes last for that.
MEMBERS_LEFT: Final = """SELECT seq, lane, turn, first,
    count - (SELECT count(*) FROM gone WHERE bundle = bundles.seq) FROM bundles
    WHERE seq IN carray(?)"""
DROP_BUNDLES: Final = "DELETE FROM bundles WHERE seq IN carray(?)"
DROP_GONE: Final = "DELETE FROM gone WHERE bundle IN carray(?)"
GONE: Final = "INSERT INTO gone VALUES(?, ?)"
GONE_OF: Final = "SELECT seq FROM gone WHERE bundle = ?"

# For checks, not for owners.
ALL_BUNDLES: Final = "SELECT seq, lane, turn, first, blob FROM bundles ORDER BY seq"
