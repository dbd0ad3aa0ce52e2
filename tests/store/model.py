"""A store as plain dicts, simple enough to be right by reading."""

from headway.store.port import Batch, Key, Position, Result, Row, Segment


class Model:
    """What a store should hold after the batches it was given."""

    def __init__(self) -> None:
        self.jobs: dict[int, Row] = {}
        self.facts: dict[tuple[str, bytes], bytes] = {}
        self.keys: dict[tuple[str, str], Key] = {}
        self.history: list[Segment] = []
        self.results: dict[int, Result] = {}

    @property
    def next_number(self) -> int:
        return (
            1 if not self.history else self.history[-1].first + self.history[-1].count
        )

    def commit(self, batch: Batch) -> None:
        self.jobs |= {row[0]: row for row in batch.puts}
        for lane, turn, first, second, change, seq in batch.moves:
            body = self.jobs[seq][6]
            self.jobs[seq] = (seq, lane, turn, first, second, change, body)
        for (seq,) in batch.ends:
            del self.jobs[seq]
        for kind, key, value in batch.facts:
            self.facts[kind, key] = value or b""
            if value is None:
                del self.facts[kind, key]
        for entry in batch.keys:
            self.keys[entry[0], entry[1]] = entry
        for name, entry in list(self.keys.items()):
            if batch.keys_before_ms is not None and entry[4] < batch.keys_before_ms:
                del self.keys[name]
        if batch.segment is not None:
            self.history.append(batch.segment)
        while (
            batch.history_before is not None
            and len(self.history) > 1
            and self.history[1].first <= batch.history_before
        ):
            del self.history[0]
        self.results |= {result[0]: result for result in batch.results}
        if batch.results_over is not None:
            until_ms, most = batch.results_over
            over = [one for one in self.results.values() if one[1] <= until_ms]
            for seq, _, _ in sorted(over, key=lambda one: (one[1], one[0]))[:most]:
                del self.results[seq]

    def rows(self, lane: int, turn: bytes, after: Position, limit: int) -> list[Row]:
        found = [row for row in self._ordered() if (row[1], row[2]) == (lane, turn)]
        return [row for row in found if (row[3], row[4], row[0]) > after][:limit]

    def turns(self, lane: int, after: bytes | None, limit: int, each: int) -> list[Row]:
        names = sorted({row[2] for row in self.jobs.values() if row[1] == lane})
        wanted = [name for name in names if after is None or name > after][:limit]
        begin = Position(-(2**63), -(2**63), -(2**63))
        return [row for name in wanted for row in self.rows(lane, name, begin, each)]

    def _ordered(self) -> list[Row]:
        return sorted(self.jobs.values(), key=lambda row: (row[3], row[4], row[0]))
