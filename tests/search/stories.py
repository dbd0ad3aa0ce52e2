"""Histories to index: random stories of a real owner, and small ones told by hand."""

from typing import Any

from headway.core import events
from headway.core.events import AnyEvent
from headway.runtime.forms import Chapter
from headway.runtime.records import encode
from headway.store.memory import MemoryStore
from headway.store.port import Segment
from tests.core.test_partition_properties import CROWDED, WEIGHTS, story
from tests.runtime.written import TIGHT, WrittenFuzz

START_MS = 1_700_000_000_000


def played(seed: int, steps: int = 120) -> tuple[WrittenFuzz, list[Segment]]:
    """A story that an owner has lived through, and the history that it wrote."""
    fuzz = WrittenFuzz(TIGHT)
    fuzz.play(story(seed, steps, CROWDED if seed % 2 else WEIGHTS))
    fuzz.send()
    store = MemoryStore(fuzz.disk)
    store.take_over()
    return fuzz, store.history(1, 1 << 40)


class Teller:
    """Events by hand; each call is one commit, a second after the last."""

    def __init__(self, first: int = 1) -> None:
        self.next = first
        self.now_ms = START_MS
        self.segments: list[Segment] = []
        self.seq = 0
        self._jobs: dict[int, tuple[Any, ...]] = {}

    def commit(self, *told: AnyEvent) -> Segment:
        blob = encode(Chapter(self.seq, {}, list(told)))
        segment = Segment(self.next, len(told), self.now_ms, blob)
        self.next += len(told)
        self.now_ms += 1_000
        self.segments.append(segment)
        return segment

    def enqueue(self, count: int = 1, **fields: Any) -> list[int]:
        labels = fields.pop("labels", None)
        given = {"queue": "mail", "slo_ms": 5_000, "tenant": "", "kind": "", **fields}
        more: tuple[Any, ...] = (self.now_ms, 100, 1, labels)
        told = []
        for _ in range(count):
            self.seq += 1
            self._jobs[self.seq] = (self.seq, 0, *given.values())
            whose = self._jobs[self.seq]
            told.append(events.Enqueued(self.now_ms, *whose, *more))
        self.commit(*told)
        return list(range(self.seq - count + 1, self.seq + 1))

    def happen(self, kind: type[Any], seqs: list[int], *more: Any) -> None:
        """The same happens to several jobs."""
        self.commit(*[kind(self.now_ms, *self._jobs[seq], *more) for seq in seqs])

    def lease(self, *seqs: int, worker: str = "w") -> None:
        until_ms = self.now_ms + 30_000
        self.happen(events.Leased, list(seqs), 1, 1, worker, 0, 0, until_ms)

    def finish(self, *seqs: int) -> None:
        self.lease(*seqs)
        self.happen(events.Acked, list(seqs), 1, 5)

    def bury(self, *seqs: int, reason: str = "failed", text: str = "") -> None:
        self.happen(events.Buried, list(seqs), 1, reason, text)
