"""The partition: commands and the time go in, decisions come out.

One state machine in one order. It never waits, reads no clock and does no I/O.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from headway.core import (
    ahead,
    fetched,
    intake,
    leases,
    life,
    publishing,
    rulings,
    schedules,
    sweeps,
    waits,
)
from headway.core.book import Book, Cron
from headway.core.commands import (
    Accepted,
    Ack,
    Answer,
    BulkPage,
    Cancel,
    Changed,
    Command,
    Configure,
    Decision,
    DropSchedule,
    Enqueue,
    Extend,
    Fetched,
    Granted,
    Judge,
    Lease,
    Nack,
    PublishWrite,
    Purge,
    PutSchedule,
    Redrive,
    Release,
    Reply,
    SetHold,
    SetKind,
    SetTenant,
    StartBulk,
    StopBulk,
    TakeIn,
    Tick,
    Wait,
    Withdraw,
)
from headway.core.defaults import DURATION_MAX_MS, TIME_MAX_MS
from headway.core.entitlement import Ledger
from headway.core.errors import BadValue, RuleBroken
from headway.core.job import Job
from headway.core.limits import RateGauge
from headway.core.promise import Board, BoardMaker
from headway.core.strand import Strand
from headway.core.urgency import Urgent, most_urgent

BOARDS_MAX: Final = 256
"""Sets of queues that are shown at once; more only while callers wait for them."""
Handler = Callable[[Book, Any, int], Answer | None]

_HANDLERS: dict[type, Handler] = {
    Enqueue: intake.enqueue,
    Cancel: intake.cancel,
    Redrive: intake.redrive,
    Purge: intake.purge,
    StartBulk: sweeps.start,
    StopBulk: sweeps.stop,
    BulkPage: sweeps.page,
    PublishWrite: publishing.publish,
    TakeIn: publishing.take_in,
    Extend: leases.extend,
    Ack: leases.ack,
    Nack: leases.nack,
    Release: leases.release,
    Wait: waits.wait,
    Reply: waits.reply,
    SetHold: rulings.set_hold,
    SetTenant: rulings.set_tenant,
    SetKind: rulings.set_kind,
    Judge: rulings.judge,
    PutSchedule: schedules.put,
    DropSchedule: schedules.drop,
    Tick: lambda book, command, now_ms: Changed(0),
    Fetched: fetched.take_in,
}


class Partition:
    """The state machine of one partition."""

    def __init__(
        self,
        *,
        has_entitlement: bool = True,
        has_fairness: bool = True,
        make_board: BoardMaker = Board,
    ) -> None:
        """Only comparisons in the simulator ask for anything but the defaults."""
        ledger = Ledger(is_active=has_entitlement)
        self.book = Book(ledger, has_fairness=has_fairness)
        self.now_ms = 0
        self._make_board = make_board
        self._boards: dict[tuple[str, ...] | None, Board] = {}
        self._stirred: dict[Board, None] = {}
        """Boards with callers waiting, to which something was posted."""
        self._waits = 0
        self._partial: dict[Lease, list[Job]] = {}
        """Callers who wait for nothing but what is being read, and what they have."""
        self._timed: dict[Lease, int] = {}
        """Callers whose patience has an end, and where that is among the timers."""
        self._handlers: dict[type, Handler] = {
            **_HANDLERS,
            Lease: self._lease,
            Withdraw: self._withdraw,
            Configure: self._configure,
        }

    def decide(self, commands: Sequence[Command], now_ms: int) -> Decision:
        """Carries out the commands in their order. Time never goes back."""
        if now_ms > self.now_ms:
            self.now_ms = now_ms
        now_ms = self.now_ms
        book = self.book
        book.open_decision()
        decision = book.decision
        handlers = self._handlers
        if now_ms >= book.shared.uses.due_ms:
            book.shared.uses.tell(now_ms)
        self._fire_timers(now_ms)
        book.look_ahead(now_ms)
        for command in commands:
            try:
                answer = handlers[type(command)](book, command, now_ms)
            except RuleBroken as error:
                answer = error
            if answer is not None:
                decision.answers.append((command, answer))
        if book.shared.waking:
            book.dispatch.parking.wake_some(now_ms)
        if self._stirred:
            self._serve_waiters(now_ms)
        if self._partial and not book.shared.reads:
            for lease in list(self._partial):
                self._give_up(lease)
        for _, told in decision.answers:
            if type(told) is Accepted:
                told.waits_ms = intake.waits_ms(book, told, now_ms)
                told.jobs = []
        return decision

    def next_ms(self) -> int | None:
        """When `decide` must be called again if no command comes before."""
        if self._stirred:
            # The last decision left something to be settled.
            return self.now_ms
        return self.book.timers.next_ms()

    def _fire_timers(self, now_ms: int) -> None:
        timers = self.book.timers
        # What fires may set new timers for this very moment.
        while due := timers.pop_due(now_ms):
            for timer in due:
                if isinstance(timer, Job):
                    leases.on_timer(self.book, timer, now_ms)
                elif isinstance(timer, Strand | RateGauge):
                    self.book.dispatch.parking.fire(timer, now_ms)
                elif isinstance(timer, Cron):
                    schedules.on_timer(self.book, timer, now_ms)
                else:
                    assert isinstance(timer, Lease)
                    self._timed.pop(timer, None)
                    self._give_up(timer)

    def _configure(self, book: Book, command: Configure, now_ms: int) -> Changed:
        name = command.config.name
        is_new = name not in book.queues
        changed = rulings.configure(book, command, now_ms)
        if is_new:
            queue = book.queues[name]
            for board in self._boards.values():
                if board.key is None or name in board.key:
                    queue.show_on(board)
        return changed

    def _lease(self, book: Book, command: Lease, now_ms: int) -> Granted | None:
        if not 1 <= command.max <= 10_000:
            raise BadValue("max", command.max, "must be from 1 to 10000")
        lease_ms = command.lease_ms
        if lease_ms is not None and not 1 <= lease_ms <= DURATION_MAX_MS:
            raise BadValue("lease_ms", lease_ms, "must be a positive duration")
        if command.wait_ms:
            if not 1 <= command.wait_ms <= DURATION_MAX_MS:
                raise BadValue("wait_ms", command.wait_ms, "must be a duration")
            command.wait_until_ms = now_ms + command.wait_ms
        board = self._board(command.queues)
        jobs = [] if board.waiters else self._grant(board, command, 0, now_ms)
        is_hurried = bool(jobs) or command.wait_until_ms <= now_ms
        if is_hurried:
            if len(jobs) == command.max or not book.shared.reads:
                return Granted(jobs)
            # There may be more in the store: that is read first.
            self._partial[command] = jobs
        self._waits += 1
        board.waiters[command] = self._waits
        book.shared.ledger.idle += command.max - len(jobs)
        book.dispatch.parking.slots_joined(now_ms)
        if not is_hurried and command.wait_until_ms < TIME_MAX_MS:
            place = book.timers.add(command, command.wait_until_ms)
            self._timed[command] = place
        self._stirred[board] = None
        return None

    def _withdraw(self, book: Book, command: Withdraw, now_ms: int) -> Changed:
        lease = command.lease
        if lease not in self._board(lease.queues).waiters:
            return Changed(0)
        self._forget_timer(lease)
        self._give_up(lease)
        return Changed(1)

    def _grant(self, board: Board, command: Lease, has: int, now_ms: int) -> list[Job]:
        book = self.book
        jobs: list[Job] = []
        wanted = command.max - has
        worker = command.worker
        asked_ms = command.lease_ms
        looks = ahead.is_worth_it(book, wanted)
        while len(jobs) < wanted:
            if looks and len(jobs) % ahead.PIECE == 0:
                lane_tier = board.pick(now_ms, book.shared.ledger)
                if lane_tier is not None:
                    most = min(ahead.PIECE, wanted - len(jobs))
                    ahead.at_starts(book, lane_tier, most)
            job = book.dispatch.next(board, now_ms)
            if job is None:
                if book.dispatch.is_unsettled and command.wait_until_ms <= now_ms:
                    # This caller can't be told to wait for the rest.
                    continue
                break
            queue = book.queues[job.queue]
            lease_ms = queue.rules.lease_ms if asked_ms is None else asked_ms
            life.lease(book, job, now_ms + lease_ms, worker, now_ms)
            board.starts += 1
            if queue.rules.floor:
                board.restart_floor(queue)
            jobs.append(job)
        return jobs

    def _serve_waiters(self, now_ms: int) -> None:
        """Whoever has waited longest is served first, over all sets of queues."""
        stirred = self._stirred
        while stirred:
            board = min(stirred, key=_longest_wait)
            if not board.waiters:
                del stirred[board]
                continue
            command = next(iter(board.waiters))
            partial = self._partial.get(command, [])
            jobs = self._grant(board, command, len(partial), now_ms)
            if not jobs:
                if self.book.dispatch.is_unsettled:
                    return
                del stirred[board]
                continue
            self.book.shared.ledger.idle -= len(jobs)
            partial += jobs
            self._forget_timer(command)
            self._partial[command] = partial
            if len(partial) == command.max or not self.book.shared.reads:
                self._give_up(command)
            else:
                del stirred[board]

    def _forget_timer(self, command: Lease) -> None:
        place = self._timed.pop(command, None)
        if place is not None:
            self.book.timers.remove(command, command.wait_until_ms, place)

    def _give_up(self, command: Lease) -> None:
        """The caller's wait is over: it gets what it was granted, if anything."""
        board = self._board(command.queues)
        jobs = self._partial.pop(command, [])
        if board.waiters.pop(command, None) is not None:
            self.book.shared.ledger.idle -= command.max - len(jobs)
            self.book.decision.answers.append((command, Granted(jobs)))

    def urgency(self, queues: tuple[str, ...] | None) -> Urgent | None:
        """How urgent the next start of these queues is; None if there is none.

        The board that it is read from is the one that a lease of them is served from.
        """
        return most_urgent(self._board(queues), self.now_ms)

    def _board(self, queues: tuple[str, ...] | None) -> Board:
        key = None if queues is None else tuple(sorted(set(queues)))
        board = self._boards.get(key)
        if board is None:
            names = list(self.book.queues) if key is None else key
            shown = [self.book.queue(name) for name in names]
            if len(self._boards) >= BOARDS_MAX:
                self._forget_boards()
            board = self._boards[key] = self._make_board(key, self._stirred)
            for queue in shown:
                queue.show_on(board)
        return board

    def _forget_boards(self) -> None:
        """Sets of queues that nobody waits for are shown anew when they are asked for.

        Whatever becomes ready is posted on every board of its queue, so there must not
        be one for every set that anybody ever thought of.
        """
        for key, board in list(self._boards.items()):
            if key is not None and not board.waiters:
                del self._boards[key]
                self._stirred.pop(board, None)
                for name in key:
                    self.book.queues[name].boards.remove(board)


def _longest_wait(board: Board) -> int:
    return next(iter(board.waiters.values()), 0)
