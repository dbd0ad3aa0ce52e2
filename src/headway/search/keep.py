"""How long ended jobs stay in the index: by age and by number, dropped bit by bit.

What time it is, history says: where nothing happens, nothing grows old.
"""

from array import array
from collections import Counter
from typing import Final

import apsw
import msgspec

from headway.core.defaults import DAY_MS
from headway.search import statements as sql
from headway.search.rows import CANCELLED, DEAD, DONE, decode_labels
from headway.search.schema import STATES
from headway.search.tally import Groups, Tally

ROWS_AT_ONCE: Final = 1_000
"""Jobs that one transaction drops."""


class Keep(msgspec.Struct, frozen=True):
    """What is older or more than this is dropped. Jobs that can still run stay."""

    age_ms: int = 14 * DAY_MS
    """Since a job was done or cancelled."""
    dead_age_ms: int = 30 * DAY_MS
    """Since it was buried."""
    ended_max: int = 2_000_000

    def __post_init__(self) -> None:
        if min(self.age_ms, self.dead_age_ms, self.ended_max) < 0:
            raise ValueError("ages and numbers of what is kept can't be negative")


def too_old(connection: apsw.Connection, keep: Keep, now_ms: int) -> list[int]:
    """Ended jobs whose time is over, and open ones that a gap has made doubtful."""
    gap = connection.execute(sql.LAST_GAP).get or 0
    found: list[int] = []
    for code in range(len(STATES)):
        is_ended = code in (DONE, CANCELLED)
        age_ms = keep.age_ms if is_ended else keep.dead_age_ms
        is_kept = not is_ended and code != DEAD
        if is_kept and not gap:
            continue
        room = ROWS_AT_ONCE - len(found)
        for seq, changed, changed_ms in connection.execute(sql.OLDEST, (code, room)):
            if changed_ms >= now_ms - age_ms or (is_kept and changed >= gap):
                break
            found.append(seq)
    return found


def too_many(connection: apsw.Connection, most: int) -> list[int]:
    """The ended jobs that changed longest ago."""
    heads = [
        (changed, seq)
        for code in (DONE, CANCELLED, DEAD)
        for seq, changed, _ in connection.execute(
            sql.OLDEST, (code, min(most, ROWS_AT_ONCE))
        )
    ]
    return [seq for _, seq in sorted(heads)[: min(most, ROWS_AT_ONCE)]]


def drop(connection: apsw.Connection, groups: Groups, seqs: list[int]) -> Tally:
    """Takes jobs out of the index, with all that was told of them."""
    wanted = apsw.carray(array("q", sorted(seqs)))
    rows = list(connection.execute(sql.DROPPED, (wanted,)))
    tally = Tally()
    for (*name, group), jobs in Counter(row[:5] for row in rows).items():
        queue, tenant, state, slo_ms = name
        tally.drop((queue, tenant, state, slo_ms), group, jobs)
    labels = [
        (*label, seq)
        for *_, seq, packed, _ in rows
        if packed is not None
        for label in decode_labels(packed).items()
    ]
    keys = [(queue, key, seq) for queue, *_, seq, _, key in rows if key]
    connection.executemany(sql.DROP_LABEL, labels)
    connection.executemany(sql.DROP_REPLY_KEY, keys)
    connection.execute(sql.DROP_TOLD, (wanted,))
    connection.execute(sql.DROP, (wanted,))
    tally.write(connection, groups)
    return tally
