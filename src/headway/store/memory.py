"""The store in memory: the same behaviour as on disk, for tests and the simulator."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from threading import Lock

from headway.store.errors import Contradiction, Fenced, HistoryGone, NotOpen
from headway.store.port import Batch, Key, Move, Position, Result, Row, Segment
from headway.store.segments import up_to

Place = tuple[int, bytes, int, int, int]
"""Where a job stands: lane, turn, keys, seq."""


class MemoryDisk:
    """What outlives a store: handles that share one disk see the same truth."""

    def __init__(self) -> None:
        self.epoch = 0
        self.jobs: dict[int, Row] = {}
        self.places: list[Place] = []
        self.facts: dict[tuple[str, bytes], bytes] = {}
        self.keys: dict[tuple[str, str], Key] = {}
        self.results: dict[int, Result] = {}
        self.overs: list[tuple[int, int]] = []
        """Until when results are kept, and whose, in this order."""
        self.history: list[Segment] = []
        self.turn = Lock()

    def check(self, batch: Batch) -> None:
        """Raises before anything is written, or not at all."""
        put = {row[0] for row in batch.puts}
        if len(put) < len(batch.puts) or not put.isdisjoint(self.jobs):
            raise Contradiction("a put of a job that exists already")
        if not all(move[5] in put or move[5] in self.jobs for move in batch.moves):
            raise Contradiction("a move of a job that does not exist")
        ended = {seq for (seq,) in batch.ends}
        has_all = all(seq in put or seq in self.jobs for seq in ended)
        if len(ended) < len(batch.ends) or not has_all:
            raise Contradiction("an end of a job that does not exist")
        left = {result[0] for result in batch.results}
        if len(left) < len(batch.results) or not left.isdisjoint(self.results):
            raise Contradiction("a second result of a job")
        segment = batch.segment
        if segment is not None:
            last = self.history[-1] if self.history else Segment(0, 1, 0, b"")
            if segment.count < 1 or segment.first != last.first + last.count:
                raise Contradiction(f"history can't go on with number {segment.first}")

    def write(self, batch: Batch) -> None:
        for row in batch.puts:
            self.put(row)
        for move in batch.moves:
            self.move(move)
        for (seq,) in batch.ends:
            self.take(seq)
        for kind, key, value in batch.facts:
            if value is None:
                self.facts.pop((kind, key), None)
            else:
                self.facts[kind, key] = value
        self.keys.update({entry[:2]: entry for entry in batch.keys})
        if batch.keys_before_ms is not None:
            self.forget_keys(batch.keys_before_ms)
        if batch.segment is not None:
            self.history.append(batch.segment)
        if batch.history_before is not None:
            self.drop_history(batch.history_before)
        for result in batch.results:
            self.results[result[0]] = result
            insort(self.overs, (result[1], result[0]))
        if batch.results_over is not None:
            self.drop_results(*batch.results_over)

    def put(self, row: Row) -> None:
        self.jobs[row[0]] = row
        insort(self.places, _place(row))

    def take(self, seq: int) -> Row:
        row = self.jobs.pop(seq)
        del self.places[bisect_left(self.places, _place(row))]
        return row

    def move(self, move: Move) -> None:
        lane, turn, first, second, change, seq = move
        body = self.take(seq)[6]
        self.put((seq, lane, turn, first, second, change, body))

    def forget_keys(self, before_ms: int) -> None:
        kept = {name: key for name, key in self.keys.items() if key[4] >= before_ms}
        self.keys = kept

    def drop_history(self, before: int) -> None:
        """Whole segments; the newest stays, since it knows the number to go on with."""
        dropped = [
            part for part in self.history[:-1] if part.first + part.count <= before
        ]
        del self.history[: len(dropped)]

    def drop_results(self, until_ms: int, most: int) -> None:
        over = self.overs[: min(max(most, 0), bisect_left(self.overs, (until_ms + 1,)))]
        del self.overs[: len(over)]
        for _, seq in over:
            del self.results[seq]

    def rows_at(self, places: Iterable[Place]) -> list[Row]:
        return [self.jobs[place[4]] for place in places]


class MemoryStore:
    """A handle on a disk in memory."""

    def __init__(self, disk: MemoryDisk | None = None) -> None:
        self._disk = disk or MemoryDisk()
        self._is_open = False
        self._is_closed = False

    def take_over(self) -> int:
        if self._is_closed:
            raise NotOpen("nothing comes after close")
        self._is_open = True
        with self._disk.turn:
            self._disk.epoch += 1
            return self._disk.epoch

    def commit(self, batch: Batch, epoch: int) -> None:
        disk = self._opened()
        with disk.turn:
            if epoch != disk.epoch:
                raise Fenced(epoch, disk.epoch)
            disk.check(batch)
            disk.write(batch)

    def facts(self, kind: str) -> list[tuple[bytes, bytes]]:
        disk = self._opened()
        with disk.turn:
            found = disk.facts.items()
            return sorted((key, value) for (of, key), value in found if of == kind)

    def jobs(self, seqs: list[int]) -> list[Row]:
        disk = self._opened()
        with disk.turn:
            return [disk.jobs[seq] for seq in set(seqs) if seq in disk.jobs]

    def rows(self, lane: int, turn: bytes, after: Position, limit: int) -> list[Row]:
        disk = self._opened()
        with disk.turn:
            begin = bisect_right(disk.places, (lane, turn, *after))
            return disk.rows_at(_of_turn(disk.places, begin, max(limit, 0), lane, turn))

    def turns(self, lane: int, after: bytes | None, limit: int, each: int) -> list[Row]:
        disk = self._opened()
        rows: list[Row] = []
        if each < 1:
            return rows
        with disk.turn:
            if after is None:
                begin = bisect_left(disk.places, (lane,))
            else:
                begin = _end_of(disk.places, lane, after)
            for _ in range(limit):
                if begin == len(disk.places) or disk.places[begin][0] != lane:
                    break
                turn = disk.places[begin][1]
                rows += disk.rows_at(_of_turn(disk.places, begin, each, lane, turn))
                begin = _end_of(disk.places, lane, turn)
        return rows

    def find_keys(self, wanted: list[tuple[str, str]]) -> list[Key]:
        disk = self._opened()
        with disk.turn:
            return [disk.keys[name] for name in set(wanted) if name in disk.keys]

    def results(self, seqs: list[int]) -> list[Result]:
        disk = self._opened()
        with disk.turn:
            return [disk.results[seq] for seq in set(seqs) if seq in disk.results]

    def first_over_ms(self) -> int | None:
        disk = self._opened()
        with disk.turn:
            return disk.overs[0][0] if disk.overs else None

    def history(self, first: int, most_bytes: int) -> list[Segment]:
        disk = self._opened()
        first = max(first, 1)
        with disk.turn:
            if disk.history and first < disk.history[0].first:
                raise HistoryGone(first, disk.history[0].first)
            wanted = (part for part in disk.history if part.first + part.count > first)
            return list(up_to(most_bytes, wanted))

    def last_segment(self) -> Segment | None:
        disk = self._opened()
        with disk.turn:
            return disk.history[-1] if disk.history else None

    def close(self) -> None:
        self._is_open = False
        self._is_closed = True

    def _opened(self) -> MemoryDisk:
        if not self._is_open:
            raise NotOpen("take_over comes first, and nothing comes after close")
        return self._disk


def _place(row: Row) -> Place:
    return (row[1], row[2], row[3], row[4], row[0])


def _end_of(places: list[Place], lane: int, turn: bytes) -> int:
    """The index behind the last row of a turn."""
    return bisect_left(places, (lane, turn + b"\0"))


def _of_turn(
    places: list[Place], begin: int, limit: int, lane: int, turn: bytes
) -> list[Place]:
    end = min(begin + limit, _end_of(places, lane, turn))
    return places[begin:end]
