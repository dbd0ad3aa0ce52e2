"""Jobs that wait in a turn one behind the other, many as one row.

Jobs of a long turn come together, start in that order and end about then. As a bundle
they are written, read and deleted at one go. A job leaves its bundle when it is over, or
when it goes to stand elsewhere and becomes a row; a bundle ends with its last job. One
that is leased stays where it is.

Bundles never overlap, neither in seqs nor, in one turn and of one first key, in the
order of their jobs: a job is in the only one where it can be, and what is read in order
is read once.
"""

from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterator
from operator import itemgetter
from typing import Any, Final

import apsw
import msgspec

from headway.store.errors import Contradiction
from headway.store.port import HELD, Move, Position, Row
from headway.store.sqlite import bundle_statements as sql
from headway.store.sqlite.bundling import Loose
from headway.store.sqlite.known import Member
from headway.store.sqlite.pending import Pending, Spot
from headway.store.sqlite.statements import BEFORE_ALL_TURNS

TAILS_MAX: Final = 10_000
"""Spots with bundles that are remembered."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[Member]).decode
_place_of_member: Final = itemgetter(1, 0)
AMONG_HELD: Final = (HELD, b"", 0, 0)
"""Where those stand that are leased or wait."""


def put(
    connection: apsw.Connection, bundles: list[list[Any]], pending: Pending
) -> list[Row]:
    """Writes bundles; answers the jobs of those that would overlap with others."""
    if not bundles:
        return []
    pending.has_bundles = True
    over: list[Any] = []
    last = connection.execute(sql.LAST_BUNDLED).get or 0
    for rows in bundles:
        spot = rows[0][1:4]
        tail = connection.execute(sql.TAIL, spot).get
        if rows[0][0] <= last or (tail is not None and rows[0][4] < tail):
            over += rows
            continue
        loose: list[Loose] = rows
        blob = _encode([(row[0], row[4], row[6]) for row in loose])
        end = rows[-1]
        told = (rows[0][0], *spot, end[4], end[0], len(rows), blob)
        connection.execute(sql.PUT_BUNDLE, told)
        _remember(pending, spot)
        last = end[0]
    return over


def _remember(pending: Pending, spot: Spot) -> None:
    if len(pending.tails) >= TAILS_MAX:
        pending.tails.clear()
    pending.tails.add(spot)


def in_order(
    connection: apsw.Connection,
    pending: Pending,
    of: tuple[Any, bytes],
    after: Position,
    limit: int,
) -> list[Row]:
    """The next rows of a turn that stand in bundles: at least so many, if there are."""
    lane, turn = of
    left = _left_of_last(pending, (lane, turn, after.first), after)
    rows = _as_rows(left, (lane, turn, after.first))
    if left:
        after = Position(after.first, left[-1][1], left[-1][0])
        if len(rows) >= limit:
            return rows
    begin: Any = (after.second, after.seq)
    ranges = (
        (sql.BUNDLES_OF_SECOND, (*of, *after)),
        (sql.BUNDLES_OF_FIRST, (*of, *after[:2])),
        (sql.BUNDLES, (*of, *after[:1])),
    )
    for statement, values in ranges:
        cursor = connection.execute(statement, values)
        for bundle, first, is_thinned, blob in cursor:
            members = _decode(blob)
            if is_thinned:
                members = _standing_there(connection, bundle, members)
            pending.known.know(members, bundle, is_whole=not is_thinned)
            _remember(pending, (lane, turn, first))
            if first == after.first:
                members = _behind(members, begin)
            rows += _as_rows(members, (lane, turn, first))
            if len(rows) >= limit:
                cursor.close()
                pending.ahead = (lane, turn, first), members
                return rows
    return rows


def _as_rows(members: list[Member], spot: tuple[Any, Any, Any]) -> list[Any]:
    lane, turn, first = spot
    return [
        (seq, lane, turn, first, second, None, body) for seq, second, body in members
    ]


def _left_of_last(pending: Pending, spot: Spot, after: Position) -> list[Member]:
    """What is left of the bundle that was read last, if that is what comes next.

    A read ends within a bundle, mostly, and the next one goes on there.
    """
    if pending.ahead is None or pending.ahead[0] != spot:
        return []
    members = pending.ahead[1]
    place = bisect_right(members, (after.second, after.seq), key=_place_of_member)
    # Before its first there may be others.
    return members[place:] if place else []


def are_there(connection: apsw.Connection) -> bool:
    """Whether there is any bundle at all."""
    return connection.execute(sql.LAST_BUNDLED).get is not None


def names(
    connection: apsw.Connection,
    lane: int,
    after: bytes | None,
    until: bytes | None,
    most: int,
) -> list[bytes]:
    """Turns that have bundles, in the order of their names, up to one and with it."""
    start = BEFORE_ALL_TURNS if after is None else after
    found = []
    for (name,) in connection.execute(sql.NAMES, (lane, start, most)):
        if name is None or (until is not None and name > until):
            break
        found.append(name)
    return found


def find(connection: apsw.Connection, seqs: Collection[int]) -> list[Row]:
    """Those of the jobs that are in bundles, as they stand."""
    return [row for _, row in _members(connection, seqs)]


def where(connection: apsw.Connection, seqs: Collection[int]) -> dict[int, int]:
    """Those of the jobs that are in bundles, and in which."""
    return {row[0]: bundle for bundle, row in _members(connection, seqs)}


class Changes:
    """What is to happen to jobs in the tables: to rows, and to members of bundles."""

    __slots__ = ("ends", "held", "left", "moves", "out")

    def __init__(self) -> None:
        self.moves: list[Move] = []
        """Of rows."""
        self.ends: list[int] = []
        """Rows that are over."""
        self.held: list[tuple[int, bytes | None]] = []
        """Members that are leased, or wait; they stay in their bundles."""
        self.out: dict[int, Move] = {}
        """Members that stand elsewhere: they become rows."""
        self.left: dict[int, list[int]] = {}
        """By bundle: members that leave it, for elsewhere or because they are over."""


def changes(connection: apsw.Connection, pending: Pending) -> Changes:
    """Of all jobs that change, which are members, and of which bundle."""
    known = pending.known
    unknown = known.strangers(pending.moves)
    unknown |= known.strangers(pending.ends)
    found = where(connection, unknown) if unknown else {}
    told = Changes()
    for seq, move in pending.moves.items():
        bundle = _bundle_of(seq, pending, found)
        if not bundle:
            told.moves.append(move)
        elif move[0] == HELD and move[:4] == AMONG_HELD:
            told.held.append((seq, move[4]))
        else:
            told.out[seq] = move
            told.left.setdefault(bundle, []).append(seq)
    last = 0
    leaving: list[int] = []
    ends: dict[Any, None] = pending.ends
    for seq in ends:
        bundle = _bundle_of(seq, pending, found)
        if not bundle:
            told.ends.append(seq)
            continue
        if bundle != last:  # mostly they end in the order of their bundles
            last = bundle
            leaving = told.left.setdefault(bundle, [])
        leaving.append(seq)
    return told


def _bundle_of(seq: int, pending: Pending, found: dict[int, int]) -> int:
    """0 if it has a row of its own."""
    bundle = pending.known.bundle_of(seq)
    return bundle if bundle >= 0 else found.get(seq, 0)


def leave(
    connection: apsw.Connection, left: dict[int, list[int]], pending: Pending
) -> None:
    """Jobs leave their bundles; what is a bundle's last is its end.

    Nobody knows these jobs for members any more, whatever becomes of the transaction:
    whoever wants to know must look.
    """
    if not left:
        return
    found = 0
    whole: list[int] = []
    spots: set[Spot] = set()
    for bundle, lane, turn, first, count in connection.execute(
        sql.MEMBERS_LEFT, (apsw.carray(array("q", sorted(left))),)
    ):
        if count < len(left[bundle]):
            raise Contradiction(f"bundle {bundle} has {count} jobs and loses more")
        found += 1
        if count == len(left[bundle]):
            whole.append(bundle)
            spots.add((lane, turn, first))
    if found < len(left):
        raise Contradiction(f"jobs leave {len(left)} bundles, but {found} are there")
    if whole:
        dropped = apsw.carray(array("q", whole))
        connection.execute(sql.DROP_BUNDLES, (dropped,))
        connection.execute(sql.DROP_GONE, (dropped,))
        for spot in spots:
            if connection.execute(sql.TAIL, spot).get is None:
                pending.tails.discard(spot)
    ended = set(whole)
    thinned = [bundle for bundle in left if bundle not in ended]
    gone = [(bundle, seq) for bundle in thinned for seq in left[bundle]]
    connection.executemany(sql.GONE, gone)
    for bundle, seqs in left.items():
        pending.known.leave(bundle, seqs)


def stream(connection: apsw.Connection) -> Iterator[Row]:
    """Every job that is in a bundle, by seq."""
    for bundle, lane, turn, first, blob in connection.execute(sql.ALL_BUNDLES):
        gone = {seq for (seq,) in connection.execute(sql.GONE_OF, (bundle,))}
        members = [member for member in _decode(blob) if member[0] not in gone]
        if members:
            between = (members[0][0], members[-1][0])
            held = dict(connection.execute(sql.HELD_BETWEEN, between))
            for member in members:
                yield _standing(member, (lane, turn, first), held)


def decode(blob: bytes) -> list[Member]:
    """The members of a bundle, in order."""
    return _decode(blob)


def _members(
    connection: apsw.Connection, seqs: Collection[int]
) -> Iterator[tuple[int, Row]]:
    """Those of the jobs that are in bundles, with their bundle."""
    if not seqs or not are_there(connection):
        return
    wanted: dict[int, set[int]] = {}
    asked = apsw.carray(array("q", seqs))
    for seq, bundle in list(connection.execute(sql.BUNDLE_BEFORE, (asked,))):
        if bundle is not None:
            wanted.setdefault(bundle, set()).add(seq)
    if not wanted:
        return
    some = apsw.carray(array("q", sorted(wanted)))
    for bundle, lane, turn, first, last, blob in connection.execute(
        sql.BUNDLES_AMONG, (some,)
    ):
        here = wanted[bundle]
        if min(here) > last:
            continue
        gone = {seq for (seq,) in connection.execute(sql.GONE_OF, (bundle,))}
        held = dict(connection.execute(sql.HELD_BETWEEN, (min(here), max(here))))
        for member in _decode(blob):
            if member[0] in here and member[0] not in gone:
                yield bundle, _standing(member, (lane, turn, first), held)


def _standing(member: Member, spot: Spot, held: dict[int, bytes | None]) -> Row:
    seq, second, body = member
    if seq in held:
        return (seq, *AMONG_HELD, held[seq], body)
    return (seq, *spot, second, None, body)


def _standing_there(
    connection: apsw.Connection, bundle: int, members: list[Member]
) -> list[Member]:
    """Without those that are gone, or held."""
    out = {seq for (seq,) in connection.execute(sql.GONE_OF, (bundle,))}
    between = (members[0][0], members[-1][0])
    out.update([seq for seq, _ in connection.execute(sql.HELD_BETWEEN, between)])
    return [member for member in members if member[0] not in out]


def _behind(members: list[Member], begin: Any) -> list[Member]:
    """Those that come after a second key and seq; mostly that is all of them."""
    return members[bisect_right(members, begin, key=_place_of_member) :]
