"""The real queue in memory: as time passes, or in time of its own."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

from headway.client.port import AsyncPort, Port
from headway.core.durations import format_ms, parse_ms
from headway.core.errors import BadValue, UnknownQueue
from headway.runtime import operating
from headway.runtime.embedded import Headway, ask
from headway.runtime.views import QueueCounts
from headway.testing.recorder import run_apart, using
from headway.testing.virtual import VirtualLink
from headway.worker.app import App
from headway.worker.local import AsyncLocalPort, LocalPort
from headway.worker.outcomes import Duration
from headway.worker.ports import MEMORY, Ports
from headway.worker.running import WorkerSettings

_OPEN: Final = ("ready", "scheduled", "leased", "waiting")
_PAGE: Final = 100
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@contextmanager
def in_memory(app: App) -> Iterator[App]:
    """The real queue, in memory: `app.work(until_empty=True)` runs what is ready."""
    ports = Ports(MEMORY)
    with using(app, ports):
        try:
            yield app
        finally:
            ports.close()


@contextmanager
def virtual_time(
    app: App, *, start: datetime | None = None
) -> Iterator["VirtualQueue"]:
    """The real queue on a clock that only its test moves; it starts now, or at `start`.

    Delays, retries, schedules, windows and timeouts of replies come in their order,
    and nobody waits. Code that looks at a clock of its own sees the real time.
    """
    if start is not None and start.tzinfo is None:
        raise BadValue("start", str(start), "has no time zone")
    start_ms = time.time_ns() // 1_000_000 if start is None else _ms(start)
    link = VirtualLink(start_ms)
    with using(app, _VirtualPorts(link)):
        try:
            yield VirtualQueue(app, link)
        finally:
            link.close()


class VirtualQueue:
    """A queue whose time is moved by what a test asks for."""

    def __init__(self, app: App, link: VirtualLink) -> None:
        self._app = app
        self._link = link

    @property
    def now(self) -> datetime:
        return _EPOCH + timedelta(milliseconds=self._link.now_ms())

    @property
    def verbs(self) -> Headway:
        """The queue's own verbs: pause, cancel, dead letters and so on."""
        return Headway(self._link)

    def counts(self, queue: str) -> QueueCounts:
        """Of jobs by their state; all 0 for a queue that nobody has used."""
        try:
            return self.verbs.counts(queue)
        except UnknownQueue:
            return QueueCounts(0, 0, 0, 0, 0)

    def run_for(self, duration: Duration) -> None:
        """Time passes, and all that falls due is run at its own time, one by one.

        With 0, what is ready now.
        """
        self._run(self._link.now_ms() + parse_ms(duration, "duration"))

    def run_until(self, moment: datetime) -> None:
        """The same up to a moment, which must have a time zone."""
        if moment.tzinfo is None:
            raise BadValue("moment", str(moment), "has no time zone")
        self._run(_ms(moment))

    def drain(self, within: Duration = "30d") -> None:
        """Runs until no job is left; AssertionError if some are after so long.

        Dead letters and schedules may be left: a schedule never ends.
        """
        until_ms = self._link.now_ms() + parse_ms(within, "within")
        run_apart(lambda: asyncio.run(self._go(until_ms, is_draining=True)))
        left = self._left()
        if left:
            after = format_ms(parse_ms(within, "within"))
            raise AssertionError(f"jobs are left after {after}: {left}")

    def _run(self, until_ms: int) -> None:
        run_apart(lambda: asyncio.run(self._go(until_ms, is_draining=False)))
        self._link.move_to(until_ms)

    async def _go(self, until_ms: int, *, is_draining: bool) -> None:
        """From one moment at which something happens to the next."""
        while True:
            left = self._left()
            if any(counts.get("ready") for counts in left.values()):
                await self._work()
                left = self._left()
            next_ms = self._link.next_ms()
            if (is_draining and not left) or next_ms is None or next_ms > until_ms:
                return
            self._link.move_to(next_ms)

    async def _work(self) -> None:
        """All that may start now, by the real worker, in the queue's own order."""
        settings = WorkerSettings(concurrency=1, until_empty=True, name="virtual")
        await self._app.worker(settings).run()

    def _left(self) -> dict[str, dict[str, int]]:
        """Jobs that are not over, by queue and state."""
        left: dict[str, dict[str, int]] = {}
        after: str | None = ""
        while after is not None:
            page = ask(self._link, operating.queues(after, _PAGE))
            after = page.next
            for view in page.queues:
                counts = {
                    state: count
                    for state in _OPEN
                    if (count := getattr(view.counts, state))
                }
                if counts:
                    left[view.name] = counts
        return left


class _VirtualPorts:
    """Ways to a queue in virtual time."""

    def __init__(self, link: VirtualLink) -> None:
        self._link = link

    def blocking(self) -> Port:
        return LocalPort(self._link)

    def awaited(self) -> AsyncPort:
        return AsyncLocalPort(self._link)

    def for_worker(self) -> AsyncPort:
        return AsyncLocalPort(self._link)

    def close(self) -> None:
        """The queue lives as long as its block."""

    async def aclose(self) -> None:
        """The queue lives as long as its block."""


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000)
