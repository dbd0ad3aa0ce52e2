"""The owner of a partition: decide, commit, answer, in that order.

It has no thread and no clock of its own: whoever drives it brings the commands and the
time, so the same owner serves an application, a server and the simulator.
"""

import logging
from collections.abc import Sequence
from typing import Final, get_args

import msgspec

from headway.core import defaults
from headway.core.bounds import Bounds
from headway.core.commands import (
    Ack,
    Answer,
    BulkPage,
    Changed,
    Command,
    Configure,
    Enqueue,
    Extend,
    Granted,
    Lease,
    Purge,
    StartBulk,
)
from headway.core.errors import BadValue, LookFailed
from headway.core.job import Job
from headway.core.memory import tidy
from headway.core.partition import Partition
from headway.runtime.bulk import BulkList, BulkPreview, Bulks, ListBulks
from headway.runtime.clock import Clock
from headway.runtime.errors import OwnerStopped
from headway.runtime.handing import handed
from headway.runtime.inbound import Arrivals, Inbound, Refused
from headway.runtime.listing import Lister, Listing, Page
from headway.runtime.measures import snapshot
from headway.runtime.meter import Meter
from headway.runtime.reading import Reading
from headway.runtime.recovery import recover
from headway.runtime.results import Ended, EndWatch, Results, Watch
from headway.runtime.retention import Retention
from headway.runtime.running import Tallies, Tally
from headway.runtime.staffing import advise
from headway.runtime.urgency import Hint, Urgency, look_at_urgency
from headway.runtime.views import (
    Autoscale,
    Count,
    Explain,
    Follow,
    Handed,
    Measure,
    Query,
    ReadHistory,
    Show,
    View,
    look,
)
from headway.runtime.waiting import BRIEF, Waits
from headway.runtime.writes import ListWrites, ShowWrite, WriteList, look_at_writes
from headway.store.errors import Corrupt, StoreError
from headway.store.port import Store

Ask = (
    Command
    | Query
    | Listing
    | ListBulks
    | ListWrites
    | ShowWrite
    | Watch
    | EndWatch
    | Inbound
    | Urgency
)
"""What may be put to an owner."""
Reply = (
    Answer
    | Handed
    | View
    | Page
    | BulkPreview
    | BulkList
    | WriteList
    | Ended
    | Refused
    | Hint
)
Answers = list[tuple[Ask, Reply]]
log: Final = logging.getLogger("headway.owner")

_COMMON: Final = frozenset({Enqueue, Lease, Ack, Extend})
_LOOKS: Final = (
    Count,
    ReadHistory,
    Measure,
    Autoscale,
    ListBulks,
    ListWrites,
    ShowWrite,
    Urgency,
    *get_args(Listing),
)
"""Answered after the commit, by what is durable then."""


class Owner:
    """Serves one partition from its store until it stops, or is replaced."""

    def __init__(
        self,
        store: Store,
        bounds: Bounds | None = None,
        retention: Retention | None = None,
        throttled: frozenset[str] | None = None,
    ) -> None:
        """`throttled` are the queues whose throttler somebody is there to ask; with None
        that is left to their configuration, for those who bring verdicts themselves.
        """
        self._store = store
        self._throttled = throttled
        self._tallies: Tallies | None = None
        self._retention = retention
        self._bounds = bounds or Bounds()
        self.partition = Partition()
        self._stopped: OwnerStopped | None = None
        self.epoch = 0
        self.meter = Meter()
        self._arrivals = Arrivals()
        self.asks: dict[int, Job] = {}
        """Jobs about which the throttler of their queue must be asked, by seq; whoever
        asks it takes them out."""

    def take_over(self, clock: Clock | None = None) -> Clock:
        """Becomes the owner and recovers what earlier ones have left.

        Answers the clock that the partition goes by from here on.
        """
        self.epoch = self._store.take_over()
        try:
            return self._recover(clock)
        except BaseException as error:
            self._store.close()  # or nobody else could own it while we live
            if isinstance(error, msgspec.MsgspecError):
                raise Corrupt(f"a record can't be read: {error}") from error
            raise

    def step(self, asks: Sequence[Ask], now_ms: int) -> Answers:
        """Decides the commands together and commits once; the answers hold.

        Queries are answered after that, by what is durable then. If anything fails,
        nothing is answered and the owner has stopped for good: what it has in memory
        may not be in the store.
        """
        if self._stopped is not None:
            raise self._stopped
        try:
            return self._step(asks, now_ms)
        except BaseException as error:
            self._stopped = OwnerStopped(f"{type(error).__name__}: {error}")
            self._store.close()
            raise self._stopped from error

    @property
    def commit_ms(self) -> int:
        """What it takes to make a decision durable; jobs are started earlier by it."""
        return self.partition.book.shared.commit_ms

    @commit_ms.setter
    def commit_ms(self, commit_ms: int) -> None:
        self.partition.book.shared.commit_ms = commit_ms

    def next_ms(self) -> int | None:
        """When `step` must be called again if no command comes before."""
        if self.partition.book.shared.reads:
            return self.partition.now_ms
        times = (
            self.partition.next_ms(),
            self._bulks.next_ms(),
            self._results.next_ms(),
        )
        return min((at_ms for at_ms in times if at_ms is not None), default=None)

    def close(self) -> None:
        """Gives the store up; what was answered is in it."""
        if self._stopped is None:
            self._stopped = OwnerStopped("the owner was closed")
            self._store.close()

    def _recover(self, clock: Clock | None) -> Clock:
        last = self._store.last_segment()
        clock = clock or Clock(0 if last is None else last.at_ms)
        now_ms = clock.now_ms()
        self._journal = recover(
            self.partition, self._store, self.epoch, now_ms, self._retention
        )
        self._reading = Reading(
            self.partition.book, self._store, self._journal, self._bounds
        )
        self._bulks = Bulks(self.partition.book, self._store)
        self._lister = Lister(self.partition.book, self._store)
        self._results = Results(self.partition.book, self._store)
        if self._throttled is not None:
            self._throttle(self._throttled, now_ms)
        return clock

    def tally_of(self, queue: str) -> Tally:
        """What runs, for the throttler of a queue."""
        assert self._tallies is not None
        return self._tallies.of[queue]

    def _throttle(self, throttled: frozenset[str], now_ms: int) -> None:
        """A queue has a throttler if there is one now, whatever the last owner had."""
        book = self.partition.book
        configs = [queue.rules.config for queue in book.queues.values()]
        wrong = [x for x in configs if x.has_throttler != (x.name in throttled)]
        if wrong:
            self._decide([self._imposed(Configure(x)) for x in wrong], now_ms, [])
        if throttled:
            self._tallies = Tallies(book, throttled)

    def _imposed(self, command: Configure) -> Configure:
        """Who has a throttler is the operator's to say, and not whoever configures."""
        config, throttled = command.config, self._throttled
        if throttled is not None and config.has_throttler != (config.name in throttled):
            is_on = config.name in throttled
            command.config = msgspec.structs.replace(config, has_throttler=is_on)
        return command

    def _step(self, asks: Sequence[Ask], now_ms: int) -> Answers:
        commands: list[Command] = []
        shows: list[Show | Explain] = []
        others: list[Ask] = []
        watches: list[Watch | EndWatch] = []
        answers: Answers = []
        for ask in asks:
            if type(ask) in _COMMON:
                # Nearly all of them, and looked up in no longer row of kinds.
                if self._tallies is not None and isinstance(ask, Lease):
                    self._give_time(ask)
                commands.append(ask)  # type: ignore[arg-type]
                continue
            match ask:
                case Show() | Explain():
                    shows.append(ask)
                case Watch() | EndWatch():
                    watches.append(ask)
                case StartBulk(is_preview=True):
                    others.append(ask)
                case Purge():
                    commands.append(self._bulks.for_purge(ask))
                case Configure():
                    commands.append(self._imposed(ask))
                case Inbound():
                    commands += self._arrivals.add(ask)
                case Follow():
                    answers.append((ask, self._follow(ask)))
                case _ if isinstance(ask, _LOOKS):
                    others.append(ask)
                case _:
                    commands.append(ask)  # type: ignore[arg-type]
        self.meter.asked(len(commands))
        visited = self._reading.before([*asks, *commands] if self._arrivals else asks)
        self._decide([*visited, *commands], now_ms, answers, shows)
        page = self._bulks.page(self.partition.now_ms)
        if page:
            # In a commit of its own: what was read is as the store has it.
            self._decide(page, now_ms, answers)
        answers += self._bulks.purged()
        for _ in range(self._bounds.reads_max):
            fetched = self._reading.next()
            if not fetched:
                break
            self._decide(fetched, now_ms, answers)
        answers += [(query, self._try_to_look(query)) for query in others]
        for watch in watches:
            answers += self._results.heard(watch, self.partition.now_ms)
        return answers

    def _give_time(self, lease: Lease) -> None:
        """Whoever can't wait would never get a job that must be asked about first."""
        if lease.wait_ms or lease.wait_until_ms:
            return
        queues = self.partition.book.queues
        assert self._tallies is not None
        for name in self._tallies.of:
            is_wanted = lease.queues is None or name in lease.queues
            if is_wanted and name in queues and queues[name].ready:
                lease.wait_ms = defaults.THROTTLER_TIMEOUT_MS
                return

    def _follow(self, ask: Follow) -> Reply:
        try:
            return Changed(int(self._journal.follow(ask.reader, ask.position)))
        except BadValue as error:
            return error

    def _try_to_look(self, query: Ask) -> Reply:
        """A look changes nothing: one that fails is told so, and stops nobody.

        Unless it has found the store or what is in memory to be broken.
        """
        try:
            return self._look(query)
        except (StoreError, msgspec.MsgspecError, AssertionError):
            raise
        except Exception as error:
            log.exception("a look failed")
            return LookFailed(f"{type(query).__name__}: {type(error).__name__}")

    def _look(self, query: Ask) -> Reply:
        """By what is durable now."""
        book, now_ms = self.partition.book, self.partition.now_ms
        match query:
            case ReadHistory():
                return self._reading.history(query)
            case StartBulk():
                return self._bulks.preview(query)
            case ListBulks():
                return self._bulks.view()
            case ListWrites() | ShowWrite():
                return look_at_writes(book, query)
            case Count():
                return look(book, query, now_ms)
            case Measure() | Autoscale():
                return self._measured(query)
            case Urgency():
                return look_at_urgency(self.partition, query)
            case _:
                assert isinstance(query, Listing)
                return self._lister.look(query, now_ms)

    def _measured(self, query: Measure | Autoscale) -> Reply:
        partition, meter = self.partition, self.meter
        now_ms = partition.now_ms
        meter.roll(now_ms)
        if query.is_brief:
            waits = Waits(partition.book, now_ms, looked_at=BRIEF)
        else:
            waits = Waits(partition.book, now_ms, self._reading.heads)
        if isinstance(query, Autoscale):
            return advise(partition.book, meter, waits, query, now_ms)
        return snapshot(
            partition,
            meter,
            waits,
            self._bounds,
            self._store,
            is_brief=query.is_brief,
        )

    def _decide(
        self,
        commands: list[Command],
        now_ms: int,
        answers: Answers,
        shows: Sequence[Show | Explain] = (),
    ) -> None:
        """Decides, commits, and then lets go of what memory need not hold.

        In between jobs are shown: what was read for that is about to go.
        """
        partition = self.partition
        decision = partition.decide(commands, now_ms)
        results = self._results
        over = results.droppable(len(decision.results), partition.now_ms)
        arrivals = self._arrivals
        entries = arrivals.entries(decision) if arrivals else ()
        batch = self._journal.write(decision, partition.now_ms, over, entries)
        meter = self.meter
        if batch is not None:
            began = meter.stopwatch()
            self._store.commit(batch, self.epoch)
            meter.committed(batch, meter.stopwatch() - began)
        if decision.results:
            results.written(until_ms for _, until_ms, _ in decision.results)
        meter.decided(decision, partition.now_ms)
        if self._tallies is not None:
            self._tallies.follow(decision.jobs)
        if arrivals:
            answers += arrivals.told()
        for command, answer in decision.answers:
            if arrivals and (inbound := arrivals.asked_by(command)) is not None:
                answers.append((inbound, answer))
            elif isinstance(answer, Granted):
                answers.append((command, handed(answer.jobs)))
            elif isinstance(command, StartBulk):
                answers += self._bulks.heard(command, answer)
            elif not isinstance(command, BulkPage):
                answers.append((command, answer))
        answers += results.news(decision, partition.now_ms)
        book = partition.book
        answers += [(query, look(book, query, now_ms)) for query in shows]
        self.asks |= {job.seq: job for job in decision.asks}
        tidy(partition.book, decision, self._bounds, partition.now_ms)
