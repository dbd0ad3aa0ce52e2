"""An owner at a desk, whose measures are looked at; its clock is set by hand."""

from typing import Any

from headway.core.bounds import Bounds
from headway.core.capacity import Wanted
from headway.core.commands import Ack, Configure, Enqueue, Lease
from headway.core.config import QueueConfig
from headway.core.spec import JobSpec
from headway.runtime.measures import LaneMeasures, Measures, QueueMeasures
from headway.runtime.owner import Ask, Owner
from headway.runtime.views import Autoscale, Handed, LeasedJob, Measure
from headway.store.memory import MemoryDisk, MemoryStore
from tests.runtime.written import FixedClock

START_MS = 1_700_000_000_000
SLO_MS = 5_000


class MeteredDesk:
    """One owner at a time over the same disk."""

    def __init__(self, *configs: QueueConfig, bounds: Bounds | None = None) -> None:
        self.disk = MemoryDisk()
        self.bounds = bounds
        self.now_ms = START_MS
        self.open()
        for config in configs or (QueueConfig(name="q", slo_ms=SLO_MS),):
            self.ask(Configure(config))

    def open(self) -> None:
        self.owner = Owner(MemoryStore(self.disk), self.bounds)
        self.owner.take_over(FixedClock(self.now_ms))

    def ask(self, ask: Ask) -> Any:
        """The answer; until it comes the owner goes on by itself."""
        answers = dict(self.owner.step([ask], self.now_ms))
        while ask not in answers:
            answers = dict(self.owner.step([], self.now_ms))
        return answers[ask]

    def put(self, count: int = 1, queue: str = "q", **fields: Any) -> list[int]:
        specs = [JobSpec(**fields) for _ in range(count)]
        seqs: list[int] = self.ask(Enqueue(queue, specs)).seqs
        return seqs

    def lease(self, most: int = 1) -> list[LeasedJob]:
        handed = self.ask(Lease(max=most))
        assert isinstance(handed, Handed)
        return handed.jobs

    def ack(self, *jobs: LeasedJob) -> None:
        self.ask(Ack([job.token for job in jobs]))

    def later(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        self.owner.step([], self.now_ms)

    def measures(self) -> Measures:
        told = self.ask(Measure())
        assert isinstance(told, Measures)
        return told

    def lane(self, queue: str = "q", slo_ms: int = SLO_MS) -> LaneMeasures:
        lanes = {(lane.queue, lane.slo_ms): lane for lane in self.measures().lanes}
        return lanes[queue, slo_ms]

    def queue(self, name: str = "q") -> QueueMeasures:
        return {queue.name: queue for queue in self.measures().queues}[name]

    def wanted(self, *queues: str, start_ms: int = 30_000) -> Wanted:
        told = self.ask(Autoscale(queues or None, start_ms))
        assert isinstance(told, Wanted)
        return told
