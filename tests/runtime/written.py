"""A partition whose every decision is written, and that can be begun anew from that."""

from collections.abc import Sequence

import msgspec

from headway.core.commands import Command, Decision
from headway.core.job import Job
from headway.core.partition import Partition
from headway.runtime.records import pack_change
from headway.runtime.recovery import recover
from headway.store.memory import MemoryDisk, MemoryStore
from tests.core.fuzz import Fuzz, Step


class Written:
    """Stands in for a partition: what it decides is committed before it is told."""

    def __init__(self, disk: MemoryDisk, now_ms: int) -> None:
        self.store = MemoryStore(disk)
        self.epoch = self.store.take_over()
        self.partition = Partition()
        self.book = self.partition.book
        self.journal = recover(self.partition, self.store, self.epoch, now_ms)

    def decide(self, commands: Sequence[Command], now_ms: int) -> Decision:
        decision = self.partition.decide(commands, now_ms)
        batch = self.journal.write(decision, self.partition.now_ms)
        if batch is not None:
            self.store.commit(batch, self.epoch)
        return decision

    def next_ms(self) -> int | None:
        return self.partition.next_ms()


class WrittenFuzz(Fuzz):
    """The same stories, over a partition that dies now and then."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        super().__init__()

    def make_partition(self, now_ms: int) -> Written:
        return Written(self.disk, now_ms)

    def restart(self) -> None:
        """Callers that waited are gone; everything else is as it was."""
        self.send()
        before = snapshot(self.book.jobs)
        self.partition = self.make_partition(self.now_ms)
        self.book = self.partition.book
        self.history.waiting.clear()
        self.asked.clear()
        self._bases.clear()
        assert snapshot(self.book.jobs) == before, "invariant 1"
        self.rules.restarted(self.book)
        self.send()

    def play_with_restarts(self, story: Sequence[Step], every: int) -> None:
        for number, step in enumerate(story):
            self.play([step])
            if number % every == every - 1:
                self.restart()


def snapshot(jobs: dict[int, Job]) -> dict[int, bytes]:
    """Everything about the jobs that has to be remembered.

    Held time is told by other clocks after a restart; the models check what it comes to.
    """
    return {
        seq: pack_change(msgspec.structs.replace(job, credit_ms=0))
        for seq, job in sorted(jobs.items())
    }
