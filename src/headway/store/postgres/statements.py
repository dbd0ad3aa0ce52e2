"""Every statement of the store but those of its functions. Values are always bound."""

from typing import Final

_JOBS: Final = """bigint[], integer[], bytea[], bigint[], bigint[], bytea[], bytea[],
    bytea[]"""
_MOVES: Final = "integer[], bytea[], bigint[], bigint[], bytea[], bigint[], bytea[]"
_REST: Final = """bigint[], text[], bytea[], bytea[], bytea[], text[], bytea[],
    bytea[], bytea[], bytea[], bigint[], bytea[], bigint[], bigint,
    bigint, integer, bigint, bytea, bigint,
    bigint[], bigint[], bytea[], bigint, bigint, bigint[], bigint[], text[]"""
_TYPES: Final = f"integer, bigint, {_JOBS}, {_MOVES}, {_REST}".split(",")
KNOW: Final = """INSERT INTO headway.partitions(name, epoch, owner, taken_at)
    VALUES(%s, 0, '', now()) ON CONFLICT DO NOTHING"""
# Waits for every commit under way, and lets no later one of an earlier epoch through.
TAKE_OVER: Final = """UPDATE headway.partitions
    SET epoch = epoch + 1, owner = %s, taken_at = now()
    WHERE name = %s AND (owner = %s OR NOT %s) RETURNING id, epoch"""
EPOCH: Final = "SELECT epoch FROM headway.partitions WHERE name = %s"
FIND: Final = "SELECT id FROM headway.partitions WHERE name = %s"

_VALUES: Final = ", ".join(f"%b::{kind.strip()}" for kind in _TYPES)
COMMIT: Final = f"SELECT headway.commit_2({_VALUES})"
MAKE_PART: Final = "SELECT headway.make_part_1(%s, %s, %s)"
DROP_PART: Final = "SELECT headway.drop_part_1(%s, %s, %s)"

_ROW: Final = """job.seq, job.lane, coalesce(job.whole_turn, job.turn),
    job.first, job.second, job.change, job.body"""
FACTS: Final = """SELECT key, value FROM headway.facts
    WHERE partition = %s AND kind = %s ORDER BY key"""
JOBS: Final = f"""SELECT {_ROW} FROM headway.jobs AS job
    WHERE partition = %s AND seq = ANY(%s::bigint[])"""  # noqa: S608
ROWS: Final = "SELECT * FROM headway.rows_1(%s, %s, %s, %s, %s, %s, %s)"
TURNS: Final = "SELECT * FROM headway.turns_1(%s, %s, %s, %s, %s)"
FIND_KEYS: Final = """SELECT queue, key, seq, fingerprint, at_ms FROM headway.keys
    WHERE partition = %s AND name = ANY(%s::bytea[])"""
RESULTS: Final = """SELECT seq, until_ms, blob FROM headway.results
    WHERE partition = %s AND seq = ANY(%s::bigint[])"""
FIRST_OVER: Final = """SELECT until_ms FROM headway.results
    WHERE partition = %s ORDER BY until_ms LIMIT 1"""
HISTORY: Final = "SELECT first, count, at_ms, blob FROM headway.history_1(%s, %s, %s)"
LAST_SEGMENT: Final = """SELECT first, count, at_ms, blob FROM headway.history
    WHERE partition = %s ORDER BY first DESC LIMIT 1"""
PARTS: Final = "SELECT max(number) FROM headway.history_parts WHERE partition = %s"

# The name of a channel can't be bound; the number in it is one.
LISTEN: Final = "LISTEN headway_inbox_{:d}"
INBOX: Final = """SELECT epoch, horizon, is_all, xact, id, queue, jobs
    FROM headway.inbox_1(%s, %s, %s, %s, %s)"""
