"""What was committed of jobs and is not sorted into their tables yet.

A commit appends what it does to jobs to one table, as it is. It is sorted in later, for
many commits at once; a job that is over by then never becomes a row. What is pending is
held here, too: of each job what has become of it in all.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from headway.store.errors import Contradiction
from headway.store.port import Move, Position, Row

Turn = tuple[int, bytes]
Written = tuple[Sequence[Row], Sequence[Move], Sequence[int]]

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[list[Row], list[Move], list[int]]).decode


class Pending:
    """Jobs by seq, each in one of three: new, standing elsewhere, or over."""

    __slots__ = ("_turns", "_unplaced", "bytes", "ends", "moves", "number", "puts")

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
        self._unplaced: list[tuple[Sequence[Row], Sequence[Move]]] = []
        self._turns: dict[Turn, dict[int, None]] = {}
        """Jobs that stand in a turn, or did; without those of `_unplaced`."""

    def __len__(self) -> int:
        return len(self.puts) + len(self.moves) + len(self.ends)

    def add(
        self, puts: Sequence[Row], moves: Sequence[Move], ends: Iterable[int]
    ) -> None:
        """In the order in which things happen to a job: put, moved, ended."""
        mine = self.puts
        for row in puts:
            mine[row[0]] = row
        for move in moves:
            lane, turn, first, second, change, seq = move
            known = mine.get(seq)
            if known is None:
                self.moves[seq] = move
            else:
                mine[seq] = (seq, lane, turn, first, second, change, known[6])
        for seq in ends:
            if mine.pop(seq, None) is None:
                self.moves.pop(seq, None)
                self.ends[seq] = None
        if puts or moves:
            self._unplaced.append((puts, moves))

    def outside(
        self, puts: Sequence[Row], moves: Sequence[Move], ends: Sequence[int]
    ) -> tuple[set[int], set[int]]:
        """Seqs that the tables must not have, and those that they must have.

        Raises Contradiction where what is known here is enough to tell.
        """
        # One by one: what is pending may be much more than what is asked for, and
        # differences of sets and keys walk through all of it.
        mine, moved, over = self.puts, self.moves, self.ends
        new = {row[0] for row in puts}
        if len(new) < len(puts) or any(seq in mine or seq in moved for seq in new):
            raise Contradiction("a job is put that is there already")
        changed = set(ends)
        if len(changed) < len(ends):
            raise Contradiction("a job ends twice")
        changed.update([move[5] for move in moves])
        known = {
            seq
            for seq in changed
            if seq not in mine and seq not in moved and seq not in new
        }
        if any(seq in over for seq in known):
            raise Contradiction("a job changes that is over")
        return new, known

    def now(self, row: Row) -> Row | None:
        """What has become of a job that the tables tell of; None if it is over."""
        seq = row[0]
        if seq in self.ends:
            return None
        move = self.moves.get(seq)
        return row if move is None else (seq, *move[:5], row[6])

    def is_elsewhere(self, seq: int) -> bool:
        """Whether the tables are wrong about where the job stands."""
        return seq in self.moves or seq in self.ends

    def standing_in(self, lane: int, turn: bytes) -> list[int]:
        """Jobs whose place in this turn the tables do not know, in any order."""
        self._place()
        found = self._turns.get((lane, turn))
        if not found:
            return []
        here = (lane, turn)
        standing = {seq: None for seq in found if self._turn_of(seq) == here}
        self._turns[here] = standing
        return list(standing)

    def place_of(self, seq: int) -> Position:
        """Where a job stands in its turn, if what is here says so."""
        row = self.puts.get(seq)
        if row is not None:
            return Position(row[3], row[4], seq)
        _, _, first, second, _, _ = self.moves[seq]
        return Position(first, second, seq)

    def copy(self) -> "Pending":
        """The same, to be changed on its own; how it was written is not told."""
        other = Pending()
        other.puts = self.puts.copy()
        other.moves = self.moves.copy()
        other.ends = self.ends.copy()
        other._unplaced = [(list(self.puts.values()), list(self.moves.values()))]
        return other

    def packed(self) -> bytes:
        """All of it, as if one commit had done it."""
        return pack(
            list(self.puts.values()), list(self.moves.values()), list(self.ends)
        )

    def _turn_of(self, seq: int) -> Turn | None:
        row = self.puts.get(seq)
        if row is not None:
            return row[1], row[2]
        move = self.moves.get(seq)
        return None if move is None else (move[0], move[1])

    def _place(self) -> None:
        """Sorts by turns what has come; only where turns are read is it of use."""
        turns = self._turns
        for puts, moves in self._unplaced:
            for row in puts:
                turns.setdefault((row[1], row[2]), {})[row[0]] = None
            for move in moves:
                turns.setdefault((move[0], move[1]), {})[move[5]] = None
        self._unplaced = []


def pack(puts: Sequence[Row], moves: Sequence[Move], ends: Sequence[int]) -> bytes:
    return _encode((puts, moves, ends))


def unpack(blob: bytes) -> Written:
    return _decode(blob)
