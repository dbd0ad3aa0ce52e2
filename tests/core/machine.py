"""A partition at the other end of short calls, for tests that tell a story in time."""

from typing import Any

import msgspec

from headway.core import events
from headway.core.commands import (
    Accepted,
    Ack,
    Answer,
    Command,
    Configure,
    Decision,
    Enqueue,
    Granted,
    Lease,
    Tick,
)
from headway.core.config import QueueConfig
from headway.core.job import Job
from headway.core.partition import Partition
from headway.core.spec import JobSpec

MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
START_MS = 20_000 * DAY_MS
"""Midnight UTC of some day, so that windows are easy to say."""


class Machine:
    """A partition, its time, and all that it ever said."""

    def __init__(self, *configs: QueueConfig, **options: Any) -> None:
        self.partition = Partition(**options)
        self.now_ms = START_MS
        self.events: list[msgspec.Struct] = []
        self.asked: list[Job] = []
        for config in configs:
            self.ask(Configure(config))

    def decide(self, *commands: Command) -> Decision:
        decision = self.partition.decide(commands, self.now_ms)
        self.events += decision.events
        self.asked += decision.asks
        return decision

    def ask(self, command: Command) -> Answer | None:
        """The answer to one command; None while a lease waits."""
        for asked, answer in self.decide(command).answers:
            if asked is command:
                return answer
        return None

    def pass_ms(self, by_ms: int) -> Decision:
        """Lets time pass, stopping wherever the partition has something to do."""
        end_ms = self.now_ms + by_ms
        while True:
            next_ms = self.partition.next_ms()
            if next_ms is None or next_ms >= end_ms:
                break
            self.now_ms = max(self.now_ms, next_ms)
            self.decide(Tick())
            if self.partition.next_ms() == next_ms:
                break
        self.now_ms = end_ms
        return self.decide(Tick())

    def put(self, queue: str, *specs: JobSpec) -> list[int]:
        answer = self.ask(Enqueue(queue, list(specs)))
        assert isinstance(answer, Accepted), answer
        return answer.seqs

    def lease(self, most: int = 1, queues: tuple[str, ...] | None = None) -> list[Job]:
        """What a worker gets that does not wait."""
        answer = self.ask(Lease("w", queues, most))
        assert isinstance(answer, Granted), answer
        return answer.jobs

    def starts(
        self, most: int = 10_000, queues: tuple[str, ...] | None = None
    ) -> list[int]:
        """Leases all that can start, and says which in their order."""
        return [job.seq for job in self.lease(most, queues)]

    def run(self, most: int, queues: tuple[str, ...] | None = None) -> list[Job]:
        """Leases and acks jobs one after the other, as one quick worker would."""
        done: list[Job] = []
        for _ in range(most):
            jobs = self.lease(1, queues)
            if not jobs:
                break
            self.ask(Ack([jobs[0].token]))
            done += jobs
        return done

    def leased(self) -> list[events.Leased]:
        return [event for event in self.events if isinstance(event, events.Leased)]


def specs(count: int, **fields: Any) -> list[JobSpec]:
    return [JobSpec(**fields) for _ in range(count)]
