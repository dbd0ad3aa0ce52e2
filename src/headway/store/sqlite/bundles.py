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
from collections.abc import Collection, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final

import apsw
import msgspec

from headway.store.errors import Contradiction
from headway.store.port import HELD, Move, Position, Row
from headway.store.sqlite import bundle_statements as sql
from headway.store.sqlite.known import Member
from headway.store.sqlite.pending import Pending, Spot
from headway.store.sqlite.statements import BEFORE_ALL_TURNS, BODY_INLINE_BYTES

JOBS_MAX: Final = 128
"""Jobs of one bundle. All of them are read to find one."""
TAILS_MAX: Final = 10_000
"""Spots with bundles that are remembered."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[Member]).decode
_spot: Final = itemgetter(1, 2, 3)
_place_of_member: Final = itemgetter(1, 0)
AMONG_HELD: Final = (HELD, b"", 0, 0)
"""Where those stand that are leased or wait."""


def split(
    puts: list[Row], least: int, spots: Collection[Spot] | None = None
) -> tuple[list[list[Row]], list[Row]]:
    """What to make bundles of, and the rest. `puts` are in the order of their seqs.

    Only so many or more that follow each other in one turn are worth it; with `spots`,
    only there.
    """
    if _is_one_line(puts):
        first_row: Any = puts[0]
        is_wanted = spots is None or _spot(first_row) in spots
        if len(puts) < least or not is_wanted or first_row[1] < 0 or first_row[0] < 1:
            return [], puts
        return [puts[at : at + JOBS_MAX] for at in range(0, len(puts), JOBS_MAX)], []
    bundles: list[list[Row]] = []
    rest: list[Row] = []
    begin = 0
    while begin < len(puts):
        seq, lane, turn, first, _, _, _ = puts[begin]
        end = _end_of_run(puts, begin)
        run = puts[begin:end]
        begin = end
        is_wanted = spots is None or (lane, turn, first) in spots
        if len(run) < least or not is_wanted or lane < 0 or seq < 1:
            rest += run
            continue
        fit = _in_line(run)
        if len(fit) < least:
            rest += run
            continue
        if len(fit) < len(run):
            kept = {row[0] for row in fit}
            rest += [row for row in run if row[0] not in kept]
        bundles += [fit[at : at + JOBS_MAX] for at in range(0, len(fit), JOBS_MAX)]
    return bundles, rest


Loose = tuple[Any, ...]
"""A row where it only passes through: compiled code would take it apart, make numbers of
its own of what is in it, and put another one together."""


def _is_one_line(puts: Sequence[Loose]) -> bool:
    """Whether all stand in one turn as they came, and are small: mostly they do."""
    if not puts:
        return False
    its_first: int = puts[0][3]
    latest: int = puts[0][4]
    its_lane: int = puts[0][1]
    its_turn: bytes = puts[0][2]
    for row in puts:
        lane: int = row[1]
        turn: bytes = row[2]
        first: int = row[3]
        second: int = row[4]
        body: bytes = row[6]
        if lane != its_lane or first != its_first or second < latest:
            return False
        if row[5] is not None or len(body) > BODY_INLINE_BYTES:
            return False
        if turn is not its_turn and turn != its_turn:
            return False
        latest = second
    return True


def _end_of_run(puts: Sequence[Loose], begin: int) -> int:
    """Where those end that stand in the same turn and have the same first key."""
    first_row = puts[begin]
    turn: bytes = first_row[2]
    first: object = first_row[3]
    lane: object = first_row[1]
    end = begin + 1
    while end < len(puts):
        row = puts[end]
        if row[2] != turn or row[3] != first or row[1] != lane:
            break
        end += 1
    return end


def _in_line(run: Sequence[Loose]) -> list[Any]:
    """Those that are small and as they came, and stand in the order of their seqs."""
    fit: list[Loose] = []
    latest: Any = run[0][4]
    for row in run:
        second = row[4]
        if row[5] is None and second >= latest and len(row[6]) <= BODY_INLINE_BYTES:
            latest = second
            fit.append(row)
    return fit


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
    rows: list[Any] = []
    lane, turn = of
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
            rows += [
                (seq, lane, turn, first, second, None, body)
                for seq, second, body in members
            ]
            if len(rows) >= limit:
                cursor.close()
                return rows
    return rows


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
