"""What was committed of jobs and is not sorted into their tables yet.

A commit appends what it does to jobs to one table, as it is. It is sorted in later, for
many commits at once; a job that is over by then never becomes a row. What is pending is
held here, too: of each job what has become of it in all.
"""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Final

import msgspec

from headway.store.errors import Contradiction
from headway.store.port import HELD, Move, Row
from headway.store.sqlite.known import Known, Member
from headway.store.sqlite.places import Place, Places

Spot = tuple[int, bytes, int]
"""Where bundles stand one behind the other: lane, turn and first key."""
Written = tuple[Sequence[Row], Sequence[Move], Sequence[int]]

UNPLACED: Final = 1_024
"""Jobs that have come and need no place before those are left out that have gone."""
_seq: Final = itemgetter(0)
_lane_of_move: Final = itemgetter(0)
_seq_of_move: Final = itemgetter(5)
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[list[Row], list[Move], list[int]]).decode


class Pending:
    """Jobs by seq, each in one of three: new, standing elsewhere, or over."""

    __slots__ = (
        "_places",
        "_unplaced",
        "ahead",
        "bytes",
        "ends",
        "has_bundles",
        "known",
        "moves",
        "number",
        "puts",
        "tails",
    )

    def __init__(self) -> None:
        self.puts: dict[int, Row] = {}
        """Jobs of which the tables know nothing, as they stand now."""
        self.moves: dict[int, Move] = {}
        """Jobs that the tables have elsewhere, or as they were."""
        self.ends: dict[int, None] = {}
        """Jobs that the tables have, and that are over."""
        self.number = 0
        """The last commit that is in here."""
        self.bytes = 0
        """What all these commits have written."""
        self.known = Known()
        self.has_bundles = True
        """Whether the tables may have any: a turn is read faster where there are none."""
        self.tails: set[Spot] = set()
        """Where there are bundles: whatever comes there will wait, too."""
        self.ahead: tuple[Spot, list[Member]] | None = None
        """The bundle that a read ended in, as long as nothing is sorted in."""
        self._unplaced: list[int] = []
        self._places = Places()
        """Where jobs stand, or did; without those of `_unplaced`."""

    def __len__(self) -> int:
        return len(self.puts) + len(self.moves) + len(self.ends)

    def add(
        self, puts: Sequence[Row], moves: Sequence[Move], ends: Iterable[int]
    ) -> None:
        """In the order in which things happen to a job: put, moved, ended."""
        # Seqs as the objects that they are: compiled code that takes a row apart makes
        # numbers of its own of all that is in it, and objects again for dictionaries.
        mine, moved, over = self.puts, self.moves, self.ends
        mine.update(zip(map(_seq, puts), puts, strict=True))
        some: Sequence[tuple[Any, ...]] = moves
        for move in some:
            seq = move[5]
            known = mine.get(seq)
            if known is None:
                moved[seq] = move
            else:
                mine[seq] = _moved(known, move)
        gone: Iterable[Any] = ends
        for seq in gone:
            if seq in mine:
                del mine[seq]
                continue
            if seq in moved:
                del moved[seq]
            over[seq] = None
        # Numbers alone: what a commit has written need not be kept for this, and the
        # collector of cycles would walk it again and again.
        self._unplaced += map(_seq, puts)
        if list(map(_lane_of_move, moves)).count(HELD) < len(moves):
            self._unplaced += [move[5] for move in some if move[0] != HELD]
        if len(self._unplaced) > 2 * len(self) + UNPLACED:
            still = dict.fromkeys(self._unplaced)
            self._unplaced = [seq for seq in still if seq in mine or seq in self.moves]

    def outside(
        self, puts: Sequence[Row], moves: Sequence[Move], ends: Sequence[int]
    ) -> tuple[set[int], set[int]]:
        """Seqs that the tables must not have, and those that they must have.

        Raises Contradiction where what is known here is enough to tell.
        """
        # One after the other: what is pending may be much more than what is asked for,
        # and differences with more than one thing walk through all of it.
        mine, moved = self.puts, self.moves
        new = set(map(_seq, puts))
        if len(new) < len(puts) or not (
            mine.keys().isdisjoint(new) and moved.keys().isdisjoint(new)
        ):
            raise Contradiction("a job is put that is there already")
        changed = set(ends)
        if len(changed) < len(ends):
            raise Contradiction("a job ends twice")
        changed.update(map(_seq_of_move, moves))
        there = changed.difference(mine).difference(moved).difference(new)
        if not self.ends.keys().isdisjoint(there):
            raise Contradiction("a job changes that is over")
        return new, self.known.strangers(there)

    def read(self, rows: Sequence[Row]) -> None:
        """The tables have these jobs: nobody need ask them once more."""
        self.known.read(list(map(_seq, rows)))

    def now(self, row: Row) -> Row | None:
        """What has become of a job that the tables tell of; None if it is over."""
        seq = row[0]
        if seq in self.ends:
            return None
        move = self.moves.get(seq)
        return row if move is None else (seq, *move[:5], row[6])

    def standing(self, rows: list[Row]) -> list[Row]:
        """Those of the tables' rows that are right about where the job stands."""
        if self._stand(list(map(_seq, rows))):
            return rows
        moves, ends = self.moves, self.ends
        return [row for row in rows if row[0] not in moves and row[0] not in ends]

    def disturbed(self, found: dict[bytes, list[Row]]) -> set[bytes]:
        """Turns of whose rows some do not stand there any more."""
        seqs: list[Any] = []
        for rows in found.values():
            seqs += map(_seq, rows)
        if self._stand(seqs):
            return set()
        moves, ends = self.moves, self.ends
        names: set[bytes] = set()
        for name, rows in found.items():
            for row in rows:
                if row[0] in moves or row[0] in ends:
                    names.add(name)
        return names

    def names(
        self, lane: int, after: bytes | None, until: bytes | None, most: int
    ) -> list[bytes]:
        """Turns in which there may be such jobs, in the order of their names."""
        self._place()
        return self._places.names(lane, after, until, most)

    def standing_in(
        self, lane: int, turn: bytes, after: Place, until: Place | None, most: int
    ) -> list[Place]:
        """The first places of such jobs, beyond the one and up to the other."""
        self._place()
        here = (lane, turn)
        line = self._places.line(here)
        if line is None or most < 1:
            return []
        first, end = line.between(after, until)
        found: list[Place] = []
        number = first
        while number < end and len(found) < most:
            place = line.at(number)
            number += 1
            if self._stands(place, lane, turn):
                found.append(place)
        line.keep(first, number, found)
        if not len(line):
            self._places.drop(here)
        return found

    def copy(self) -> "Pending":
        """The same, to be changed on its own; how it was written is not told."""
        other = Pending()
        other.puts = self.puts.copy()
        other.moves = self.moves.copy()
        other.ends = self.ends.copy()
        other.known = self.known
        other.tails = self.tails
        other.has_bundles = self.has_bundles
        other._unplaced = [*self.puts, *self.moves]
        return other

    def packed(self) -> bytes:
        """All of it, as if one commit had done it."""
        return pack(
            list(self.puts.values()), list(self.moves.values()), list(self.ends)
        )

    def _stand(self, seqs: list[Any]) -> bool:
        """Whether all of them stand where the tables say, as those do that are next."""
        return self.moves.keys().isdisjoint(seqs) and self.ends.keys().isdisjoint(seqs)

    def _stands(self, place: Place, lane: int, turn: bytes) -> bool:
        first, second, seq = place
        row = self.puts.get(seq)
        if row is not None:
            return (
                row[1] == lane
                and row[3] == first
                and row[4] == second
                and row[2] == turn
            )
        move = self.moves.get(seq)
        return (
            move is not None
            and move[0] == lane
            and move[2] == first
            and move[3] == second
            and move[1] == turn
        )

    def _place(self) -> None:
        """Puts what has come where it stands now; of use only where turns are read."""
        if not self._unplaced:
            return
        unplaced, self._unplaced = self._unplaced, []
        for seq in unplaced:
            self._place_job(seq)

    def _place_job(self, seq: int) -> None:
        row = self.puts.get(seq)
        if row is not None:
            # Those that are held are never read in order while they are pending.
            if row[1] != HELD:
                self._places.add((row[1], row[2]), (row[3], row[4], seq))
            return
        move = self.moves.get(seq)
        if move is not None and move[0] != HELD:
            self._places.add((move[0], move[1]), (move[2], move[3], seq))


def _moved(row: Row, move: Move) -> Row:
    """A new job that stands elsewhere by now, or has changed."""
    lane, turn, first, second, change, seq = move
    return seq, lane, turn, first, second, change, row[6]


def pack(puts: Sequence[Row], moves: Sequence[Move], ends: Sequence[int]) -> bytes:
    return _encode((puts, moves, ends))


def unpack(blob: bytes) -> Written:
    return _decode(blob)
