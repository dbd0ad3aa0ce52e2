"""The owner of a partition: decide, commit, answer, in that order.

It has no thread and no clock of its own: whoever drives it brings the commands and the
time, so the same owner serves an application, a server and the simulator.
"""

from collections.abc import Sequence

from headway.core.commands import Answer, Command, Enqueue, Granted
from headway.core.job import Job
from headway.core.partition import Partition
from headway.runtime.clock import Clock
from headway.runtime.errors import OwnerStopped
from headway.runtime.recovery import recover
from headway.runtime.views import (
    Count,
    Explain,
    Handed,
    Query,
    Show,
    View,
    leased_job,
    look,
)
from headway.store.port import Store

Ask = Command | Query
"""What may be put to an owner."""
Reply = Answer | Handed | View
Answers = list[tuple[Ask, Reply]]
_QUERIES = (Show, Explain, Count)


class Owner:
    """Serves one partition from its store until it stops, or is replaced."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.partition = Partition()
        self._stopped: OwnerStopped | None = None
        self.epoch = 0
        self.asks: list[Job] = []
        """Jobs about which the throttler of their queue must be asked."""

    def take_over(self, clock: Clock | None = None) -> Clock:
        """Becomes the owner and recovers what earlier ones have left.

        Answers the clock that the partition goes by from here on.
        """
        self.epoch = self._store.take_over()
        last = self._store.last_segment()
        clock = clock or Clock(0 if last is None else last.at_ms)
        now_ms = clock.now_ms()
        self._journal = recover(self.partition, self._store, self.epoch, now_ms)
        return clock

    def step(self, asks: Sequence[Ask], now_ms: int) -> Answers:
        """Decides the commands together and commits once; the answers hold.

        Queries are answered after that, by what is durable then.

        If anything fails, nothing is answered and the owner has stopped for good: what
        it has in memory may not be in the store.
        """
        if self._stopped is not None:
            raise self._stopped
        commands: list[Command] = []
        queries: list[Query] = []
        for ask in asks:
            if isinstance(ask, _QUERIES):
                queries.append(ask)
            else:
                commands.append(ask)
        try:
            self._look_up_keys(commands)
            decision = self.partition.decide(commands, now_ms)
            batch = self._journal.write(decision, self.partition.now_ms)
            if batch is not None:
                self._store.commit(batch, self.epoch)
        except BaseException as error:
            self._stopped = OwnerStopped(f"{type(error).__name__}: {error}")
            self._store.close()
            raise self._stopped from error
        self.asks += decision.asks
        answers: Answers = [
            (command, Handed([leased_job(job) for job in answer.jobs]))
            if isinstance(answer, Granted)
            else (command, answer)
            for command, answer in decision.answers
        ]
        book = self.partition.book
        answers += [(query, look(book, query, now_ms)) for query in queries]
        return answers

    @property
    def commit_ms(self) -> int:
        """What it takes to make a decision durable; jobs are started earlier by it."""
        return self.partition.book.shared.commit_ms

    @commit_ms.setter
    def commit_ms(self, commit_ms: int) -> None:
        self.partition.book.shared.commit_ms = commit_ms

    def next_ms(self) -> int | None:
        """When `step` must be called again if no command comes before."""
        return self.partition.next_ms()

    def close(self) -> None:
        """Gives the store up; what was answered is in it."""
        if self._stopped is None:
            self._stopped = OwnerStopped("the owner was closed")
            self._store.close()

    def _look_up_keys(self, commands: Sequence[Command]) -> None:
        """Idempotency keys that memory does not hold may be in the store."""
        wanted = []
        queues = self.partition.book.queues
        for command in commands:
            if isinstance(command, Enqueue) and command.queue in queues:
                keys = queues[command.queue].keys
                for spec in command.specs:
                    key = spec.idempotency_key
                    if key is not None and not keys.holds(key):
                        wanted.append((command.queue, key))
        if wanted:
            for queue, key, seq, digest, at_ms in self._store.find_keys(wanted):
                queues[queue].keys.restore(key, seq, digest, at_ms)
