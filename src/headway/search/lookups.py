"""Every statement that the index is read by, but for searches. Values are always bound.

Not one of them scans or sorts a table; a test reads their query plans.
"""

from typing import Final

from headway.search.statements import COLUMNS

JOB: Final = f"SELECT {COLUMNS} FROM jobs WHERE seq = ?"  # noqa: S608
# A row is known by its last event: those that end before are not read.
TIMELINE: Final = """SELECT blob FROM events
    WHERE seq = ? AND number > ? ORDER BY number LIMIT ?"""
LANES: Final = """SELECT slo_ms, state, n FROM lanes
    WHERE queue = ? ORDER BY slo_ms, state"""
TENANTS: Final = """SELECT tenant, state, sum(n) FROM counts
    WHERE queue = ? AND tenant >= ? GROUP BY tenant, state
    ORDER BY tenant, state LIMIT ?"""
TENANTS_AFTER: Final = """SELECT tenant, state, sum(n) FROM counts
    WHERE queue = ? AND tenant > ? GROUP BY tenant, state
    ORDER BY tenant, state LIMIT ?"""
WAITING: Final = """SELECT seq FROM reply_keys
    WHERE queue = ? AND key = ? ORDER BY seq LIMIT ?"""
MARK_BEFORE: Final = """SELECT number, seq FROM marks
    WHERE at_ms < ? ORDER BY at_ms DESC LIMIT 1"""
MARK_FROM: Final = """SELECT number, seq FROM marks
    WHERE at_ms >= ? ORDER BY at_ms LIMIT 1"""

_IN_GROUP: Final = """FROM jobs INDEXED BY jobs_in_group
    WHERE group_id = groups.id AND group_id > 0 ORDER BY changed"""
GROUPS: Final = f"""SELECT id, reason, line, n,
    (SELECT ended_ms {_IN_GROUP} LIMIT 1),
    (SELECT ended_ms {_IN_GROUP} DESC LIMIT 1),
    (SELECT seq {_IN_GROUP} DESC LIMIT 1)
    FROM groups WHERE queue = ?"""  # noqa: S608
