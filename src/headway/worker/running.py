"""The worker: leases what it can start now, runs it, and ends without losing any."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from headway.client.origin import delays_s
from headway.client.port import AsyncPort
from headway.core import defaults
from headway.core.durations import parse_ms
from headway.core.errors import BadValue, LeaseLost
from headway.wire.values import BATCH_MAX
from headway.wire.work import Failure, Leased, Settled
from headway.worker.attempt import attempt, told
from headway.worker.handler import Handler
from headway.worker.heart import Heart
from headway.worker.outcomes import Duration, ended_unheard
from headway.worker.settling import LOST, Settling
from headway.worker.threads import Threads

log: Final = logging.getLogger("headway.worker")
WAIT_MS: Final = 20_000
"""How long a lease call waits for a job."""
LEASE_MAX: Final = 100
"""Jobs in one answer: with the largest payloads it is more than 100 MiB already."""
LAST_WORDS_S: Final = 2.0
"""How long the end waits for a queue that does not answer."""
CONCURRENCY_MAX: Final = 10_000


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker works."""

    queues: tuple[str, ...] = ()
    """None named: those of its handlers."""
    concurrency: int = 20
    """Jobs at once."""
    grace: Duration = "28s"
    """How long running jobs may go on when the worker is asked to stop."""
    lease: Duration = defaults.LEASE_MS
    until_empty: bool = False
    """Stop when nothing is ready, instead of waiting for more."""
    is_isolated: bool = False
    """Every handler has a process of its own, whatever it says itself."""
    name: str = msgspec.field(
        default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}"
    )

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= CONCURRENCY_MAX:
            rule = f"must be from 1 to {CONCURRENCY_MAX}"
            raise BadValue("concurrency", self.concurrency, rule)
        parse_ms(self.grace, "grace")
        if parse_ms(self.lease, "lease") < 1:
            raise BadValue("lease", self.lease, "must be above 0")


class _Run:
    """A job that this worker holds."""

    __slots__ = ("is_dropped", "job", "task")

    def __init__(self, job: Leased) -> None:
        self.job = job
        self.task: asyncio.Task[None] | None = None
        self.is_dropped = False
        """Its lease is not ours any more: what comes of it is told nobody."""


class Worker:
    """Runs jobs of some handlers, until it is stopped."""

    def __init__(
        self,
        handlers: Mapping[tuple[str, str], Handler[..., Any]],
        port: Callable[[], AsyncPort],
        settings: WorkerSettings,
    ) -> None:
        """`port` makes a port for the loop that calls it."""
        self._handlers = handlers
        self._make_port = port
        self._settings = settings
        named = {queue for queue, _ in handlers}
        self._queues = settings.queues or tuple(sorted(named))
        if not self._queues:
            raise BadValue("queues", (), "there is no handler, and no queue is named")
        self._held: dict[str, _Run] = {}
        """Leased, and not settled yet."""
        self._running = 0
        self._alone = ""
        """The token of a job that may kill its worker: beside it none is started."""
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self._threads = Threads(settings.concurrency)

    def stop(self) -> None:
        """Leases no more and ends within its grace; asked again, at once."""
        if self._stopping.is_set():
            self._hurry.set()
        self._stopping.set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        self._port = self._make_port()
        self._settling = Settling(self._port, self._settled)
        settling = asyncio.ensure_future(self._settling.run())
        heart = Heart(
            self._make_port,
            self._held,
            parse_ms(self._settings.lease, "lease"),
            lambda got: _soon(loop, self._heard, got),
        )
        heart.start()
        try:
            await self._until_stopped(settling)
            await self._have_grace()
        finally:
            # However it ends, nothing stays in nobody's hands.
            await self._give_back(settling)
            heart.stop()
            self._threads.close()
            settling.cancel()
            await asyncio.gather(settling, return_exceptions=True)
            await self._port.close()

    async def _until_stopped(self, settling: "asyncio.Future[None]") -> None:
        leasing = asyncio.ensure_future(self._lease_on())
        stopping = asyncio.ensure_future(self._stopping.wait())
        waited: set[asyncio.Future[Any]] = {leasing, stopping, settling}
        try:
            done, _ = await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            for ended in done:
                ended.result()
        finally:
            leasing.cancel()
            stopping.cancel()
            await asyncio.gather(leasing, stopping, return_exceptions=True)

    async def _lease_on(self) -> None:
        """Asks for as many jobs as can be started now: none is hoarded."""
        pauses = delays_s()
        is_lost = False
        settings = self._settings
        wait_ms = 0 if settings.until_empty else WAIT_MS
        lease_ms = parse_ms(settings.lease, "lease")
        while True:
            self._changed.clear()
            free = settings.concurrency - self._running
            if free <= 0 or self._alone in self._held:
                await self._changed.wait()
                continue
            try:
                jobs = await self._port.lease(
                    self._queues,
                    min(free, LEASE_MAX),
                    wait_ms=wait_ms,
                    lease_ms=lease_ms,
                    worker=settings.name,
                )
            except LOST as error:
                log.warning("no jobs can be had now: %s", error)
                is_lost = True
                await asyncio.sleep(next(pauses))
                continue
            if is_lost:
                log.warning("jobs can be had again")
                pauses, is_lost = delays_s(), False
            for job in await self._set_apart(jobs):
                self._start(job)
            if not jobs and settings.until_empty:
                if not self._held:
                    return
                await self._changed.wait()
            # What is quick ends before the next lease is asked for, which is then larger.
            await asyncio.sleep(0)

    async def _set_apart(self, jobs: list[Leased]) -> list[Leased]:
        """A job at its last chance starts alone: all others are given back first.

        It may be what kills its workers, and those beside it would die with it.
        """
        suspect = next((job for job in jobs if is_last_chance(job)), None)
        if suspect is None:
            return jobs
        log.warning("job %s: its lease was lost; its last attempt is alone", suspect.id)
        self._held.update((job.token, _Run(job)) for job in jobs)
        self._alone = suspect.token
        others = [job.token for job in jobs if job is not suspect]
        for pause_s in delays_s():
            try:
                if others:
                    await self._port.release(others)
                break
            except LOST as error:
                log.warning("jobs can't be given back yet: %s", error)
                await asyncio.sleep(pause_s)
        for token in others:
            self._held.pop(token, None)
        return [suspect]

    def _start(self, job: Leased) -> None:
        run = _Run(job)
        self._held[job.token] = run
        self._running += 1
        run.task = asyncio.create_task(self._attempt(run))

    async def _attempt(self, run: _Run) -> None:
        job = run.job
        handler = self._handlers.get((job.queue, job.kind))
        try:
            outcome = await attempt(
                handler, job, self._threads, is_isolated=self._settings.is_isolated
            )
        except asyncio.CancelledError:
            outcome = Failure(job.token, "cancelled")
        except Exception as error:
            # Ours, not the handler's: it must not leave the job in nobody's hands.
            log.exception("job %s", job.id)
            outcome = Failure(job.token, told(f"the worker has a bug: {error!r}"))
        finally:
            self._running -= 1
        if not run.is_dropped:
            self._settling.add(outcome)
        self._changed.set()

    def _settled(self, token: str) -> None:
        self._held.pop(token, None)
        self._changed.set()

    def _heard(self, got: Settled) -> None:
        """What a heartbeat was answered: some jobs are to be given up."""
        for token in got.cancelled:
            run = self._held.get(token)
            if run is not None and run.task is not None:
                run.task.cancel()
        for token in got.stale:
            run = self._held.get(token)
            # A job that has ended meanwhile is stale, too, and is about to be settled.
            if run is not None and run.task is not None and not run.task.done():
                log.warning(
                    "job %s: its lease was lost", run.job.id, extra={"of": run.job}
                )
                self._drop(run)

    def _drop(self, run: _Run) -> None:
        run.is_dropped = True
        self._held.pop(run.job.token, None)
        if run.task is not None:
            run.task.cancel()

    async def _have_grace(self) -> None:
        """Running jobs may end, for a while."""
        grace_s = parse_ms(self._settings.grace, "grace") / 1_000
        hurry = asyncio.ensure_future(self._hurry.wait())
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                while self._held and not hurry.done():
                    self._changed.clear()
                    changed = asyncio.ensure_future(self._changed.wait())
                    await asyncio.wait(
                        {changed, hurry}, return_when=asyncio.FIRST_COMPLETED
                    )
                    changed.cancel()
        hurry.cancel()

    async def _give_back(self, settling: "asyncio.Future[None]") -> None:
        """What still runs is given back, and what has ended is told."""
        rest = [
            run
            for run in self._held.values()
            if run.task is None or not run.task.done()
        ]
        tokens = [run.job.token for run in rest]
        for run in rest:
            self._drop(run)
        self._settling.end()
        with suppress(TimeoutError, *LOST):
            async with asyncio.timeout(LAST_WORDS_S):
                for first in range(0, len(tokens), BATCH_MAX):
                    await self._port.release(tokens[first : first + BATCH_MAX])
                await settling
        if tokens:
            log.warning("%d jobs were given back unfinished", len(tokens))


def is_last_chance(job: Leased) -> bool:
    """Its lease was lost, and no attempt follows this one."""
    if job.attempt < job.attempts_max:
        return False
    return isinstance(ended_unheard(job), LeaseLost)


def _soon(
    loop: asyncio.AbstractEventLoop, call: Callable[[Settled], None], got: Settled
) -> None:
    with suppress(RuntimeError):  # The loop is closed already.
        loop.call_soon_threadsafe(call, got)
