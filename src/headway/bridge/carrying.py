"""The bridge: reads messages, gives replies, and commits what has been answered.

A message is committed when the server has its reply on stable storage, and all before it
in its partition are over, too. Whatever happens in between is done again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, Protocol, TypeVar

import msgspec

from headway.bridge.gate import Gate
from headway.bridge.ledger import Ledger, Ticket
from headway.bridge.port import Aside, Marks, Message, NotNow, Place, Source, Told
from headway.bridge.refusals import Meaning, meaning
from headway.bridge.tally import Tally
from headway.client.errors import Unreachable
from headway.client.origin import delays_s
from headway.core.errors import RuleBroken, UnknownQueue
from headway.wire.expressions import Expression, Given, NotFound

T = TypeVar("T")
ROOTS: Final = ("value", "key", "header")
"""By what the expressions of a bridge may start."""
POLL_S: Final = 0.2
HOLD_S: Final = 5.0
"""How long there may be no room before the source is told to rest."""
WINDOW: Final = 2_000
"""Messages in flight."""
WINDOW_LOW: Final = 1_500
"""When so few are left of a full window, more are read."""
WARN_S: Final = 10.0
WINDOW_BYTES: Final = 64 << 20
POLL_MAX: Final = 500


class Stopped(Exception):
    """The bridge can't go on until somebody changes something."""


class Replies(Protocol):
    """A server, as far as a bridge needs it; each call is sent once."""

    def reply(self, queue: str, reply_key: str, payload: bytes) -> Awaitable[str]: ...


class Crossing(msgspec.Struct, frozen=True, kw_only=True):
    """What is carried where, and how."""

    queue: str
    key: Expression
    value: Expression
    is_stopped_by_bad: bool = False
    concurrency: int = 32
    """Replies that are given at once."""
    commit_s: float = 1.0
    report_s: float = 30.0
    grace_s: float = 20.0
    """How long replies in flight may take when it stops."""


class Bridge:
    """Carries the messages of one source to one queue."""

    def __init__(
        self,
        crossing: Crossing,
        source: Source,
        replies: Replies,
        told: Told,
        aside: Aside | None = None,
    ) -> None:
        """Made within the event loop that it runs in."""
        self._crossing = crossing
        self._source = source
        self._replies = replies
        self._told = told
        self._aside = aside
        self.tally = Tally()
        self._ledger = Ledger()
        self._gate = Gate(told)
        self._slots = asyncio.Semaphore(crossing.concurrency)
        self._tasks: set[asyncio.Task[None]] = set()
        self._last: dict[str, asyncio.Task[None]] = {}
        """By key, the reply after which the next one of this key is given."""
        self._bytes = 0
        self._eased = asyncio.Event()
        """There is room again, and for more than one."""
        self._warned_s: dict[str, float] = {}
        """When it was last told that the server puts replies off, by code."""
        self._failure: Exception | None = None
        self._is_stopping = asyncio.Event()
        self._reader = ThreadPoolExecutor(1, "headway-source")
        self._sorter = ThreadPoolExecutor(1, "headway-aside")

    def stop(self) -> None:
        """Reads no more; what is in flight has its grace. Said twice, it has none."""
        if self._is_stopping.is_set():
            for task in self._tasks:
                task.cancel()
        self._is_stopping.set()
        self._eased.set()

    async def run(self) -> None:
        """Until it is told to stop, or the source is over. Raises what stopped it."""
        try:
            await self._in_reader(self._source.open, self._gone)
            await self._read()
            await self._drain()
            await self._commit()
        except Exception as error:
            self._failure = self._failure or error
        finally:
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._in_reader(self._source.close)
            if self._aside is not None:
                await self._in_thread(self._sorter, self._aside.close)
            self._reader.shutdown()
            self._sorter.shutdown()
            self._report("stopped")
        if self._failure is not None:
            raise self._failure

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        crossing = self._crossing
        commit_at_s = loop.time() + crossing.commit_s
        report_at_s = loop.time() + crossing.report_s
        while not self._is_stopping.is_set():
            if self._source.is_over:
                if not self._tasks:
                    return
                await self._rest(POLL_S)
            else:
                await self._take_some()
            if loop.time() >= commit_at_s:
                await self._commit()
                commit_at_s = loop.time() + crossing.commit_s
            if loop.time() >= report_at_s:
                self._report("progress")
                report_at_s = loop.time() + crossing.report_s

    async def _take_some(self) -> None:
        room = self._room()
        if room == 0:
            # A source that is not asked for some minutes takes us for dead.
            await self._rest(min(HOLD_S, self._crossing.commit_s))
            room = self._room()
        wait_s = POLL_S if room else 0.0
        for message in await self._in_reader(self._source.poll, room, wait_s):
            self._take(message)

    def _room(self) -> int:
        if self._bytes >= WINDOW_BYTES:
            return 0
        return min(POLL_MAX, WINDOW - len(self._tasks))

    async def _rest(self, wait_s: float) -> None:
        """Until a good part of those in flight is over."""
        self._eased.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._eased.wait(), wait_s)

    def _take(self, message: Message) -> None:
        self.tally.read += 1
        self._bytes += message.size
        ticket = self._ledger.begin(message.place, message.offset)
        crossing = self._crossing
        key = fault = ""
        payload = b""
        if message.fault:
            fault = message.fault
        else:
            given = Given(message.value, message.headers, key=message.key)
            try:
                key = crossing.key.key(given)
                payload = crossing.value.json(given)
            except NotFound as error:
                fault = str(error)
        if fault:
            work = self._bad(message, ticket, fault)
        else:
            work = self._carry(message, ticket, key, payload, self._last.get(key))
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        if not fault:
            self._last[key] = task

        def over(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self._bytes -= message.size
            if self._last.get(key) is task:
                del self._last[key]
            if len(self._tasks) <= WINDOW_LOW and self._bytes < WINDOW_BYTES:
                self._eased.set()
            if not task.cancelled() and (error := task.exception()) is not None:
                self._fail(error)

        task.add_done_callback(over)

    async def _carry(
        self,
        message: Message,
        ticket: Ticket,
        key: str,
        payload: bytes,
        before: asyncio.Task[None] | None,
    ) -> None:
        if before is not None:
            # Of two replies of one key the first counts, and that is the earlier one.
            await asyncio.wait({before})
        pauses = delays_s()
        while True:
            await self._gate.passing()
            if ticket.is_gone:
                self.tally.dropped += 1
                return
            try:
                async with self._slots:
                    fate = await self._replies.reply(self._crossing.queue, key, payload)
            except (Unreachable, UnknownQueue) as error:
                # What holds for this reply holds for all others.
                self.tally.retried += 1
                self._gate.failed(error)
                continue
            except RuleBroken as error:
                self._gate.answered()
                match meaning(error):
                    case Meaning.BAD:
                        why = f"the server refuses it: {error.code}"
                        await self._bad(message, ticket, why)
                        return
                    case Meaning.STOP:
                        raise Stopped(f"the server refuses replies: {error}") from error
                self._put_off(message, error.code)
                await asyncio.sleep(next(pauses))
                continue
            self._gate.answered()
            self._count(fate)
            self._ledger.end(ticket)
            return

    def _put_off(self, message: Message, code: str) -> None:
        self.tally.retried += 1
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._warned_s.get(code, 0.0) + WARN_S:
            self._warned_s[code] = now_s
            self._told.warned("put off", code=code, **_where(message))

    async def _bad(self, message: Message, ticket: Ticket, why: str) -> None:
        """Tells of it, and puts it where somebody can find it."""
        self._told.failed("bad message", why=why, **_where(message))
        if self._aside is not None:
            pauses = delays_s()
            while not ticket.is_gone:
                try:
                    await self._in_thread(self._sorter, self._aside.put, message, why)
                    break
                except NotNow as error:
                    self._told.warned("not set aside", error=str(error)[:200])
                    await asyncio.sleep(next(pauses))
            else:
                self.tally.dropped += 1
                return
        elif self._crossing.is_stopped_by_bad:
            where = "/".join(map(str, _where(message).values()))
            raise Stopped(f"{where} is a bad message: {why}")
        self.tally.bad += 1
        self._ledger.end(ticket)

    def _count(self, fate: str) -> None:
        tally = self.tally
        match fate:
            case "resolved":
                tally.resolved += 1
            case "early":
                tally.early += 1
            case "repeated":
                tally.repeated += 1
            case _:
                tally.late += 1

    def _fail(self, error: BaseException) -> None:
        if self._failure is None:
            assert isinstance(error, Exception)
            self._failure = error
            self._is_stopping.set()
            self._eased.set()

    async def _drain(self) -> None:
        """What is in flight may end; what can't is given up and read again by others."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._crossing.grace_s)

    async def _commit(self) -> None:
        marks = self._ledger.due()
        if not marks:
            return
        try:
            await self._in_reader(self._source.commit, marks)
        except NotNow as error:
            self._told.warned("not committed", error=str(error)[:200])
        else:
            self._ledger.committed(marks)

    def _gone(self, places: Sequence[Place]) -> Marks:
        """In the source's thread: what is done may be committed, the rest is dropped."""
        return self._ledger.release(places)

    def _report(self, event: str) -> None:
        counts = msgspec.structs.asdict(self.tally)
        self._told.happened(event, **counts, in_flight=len(self._tasks))

    async def _in_reader(self, work: Callable[..., T], *given: object) -> T:
        return await self._in_thread(self._reader, work, *given)

    async def _in_thread(
        self, thread: ThreadPoolExecutor, work: Callable[..., T], *given: object
    ) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(thread, work, *given)


def _where(message: Message) -> dict[str, object]:
    return {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
    }
