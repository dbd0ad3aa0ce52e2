"""The app: where the queue is, and which handlers there are."""

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Literal, ParamSpec, Protocol, Self, TypeVar, Unpack, overload

import uvloop

from headway.client.port import AsyncPort, Port
from headway.core.config import QueueConfig
from headway.core.cron import Missed, Schedule
from headway.core.errors import BadValue
from headway.worker.handler import Bound, Handler
from headway.worker.hooks import Hooks, Middleware
from headway.worker.options import JobOptions
from headway.worker.outcomes import Duration
from headway.worker.payloads import written
from headway.worker.ports import Ports
from headway.worker.running import Worker, WorkerSettings
from headway.worker.signals import stopped_by_signals

P = ParamSpec("P")
R = TypeVar("R")


class AnyPorts(Protocol):
    """Ways to a queue, or to what stands for one in a test."""

    def blocking(self) -> Port: ...
    def awaited(self) -> AsyncPort: ...
    def for_worker(self) -> AsyncPort: ...
    def close(self) -> None: ...
    async def aclose(self) -> None: ...


class App:
    """Handlers, and the queue that their jobs are in.

    The address is "http://HOST:PORT" of a server, or several of a cluster with commas
    between; "sqlite:///FILE" for a queue inside this process; or "memory:". Nothing is
    opened before it is needed. `throttlers` are for a queue in this process, as in
    `headway.open`; those of a server are named where it is started.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        throttlers: Mapping[str, str] | None = None,
    ) -> None:
        self.ports: AnyPorts = Ports(url, token, throttlers)
        """The ways to the queue; a test may put others in their place."""
        self.handlers: dict[tuple[str, str], Handler[..., Any]] = {}
        """By queue and kind."""
        self._hooks = Hooks()

    @overload
    def job(self, function: Callable[P, R], /) -> Handler[P, R]: ...
    @overload
    def job(
        self, **options: Unpack[JobOptions]
    ) -> Callable[[Callable[P, R]], Handler[P, R]]: ...
    def job(self, *functions: Any, **options: Any) -> Any:
        """Makes a function a handler: `@app.job`, or with options."""

        def decorated(function: Callable[P, R]) -> Handler[P, R]:
            handler = Handler(function, dict(options), lambda: self.ports, self._hooks)
            place = handler.queue, handler.kind
            if place in self.handlers:
                rule = f"queue {handler.queue!r} has a handler of this kind already"
                raise BadValue("kind", handler.kind, rule)
            self.handlers[place] = handler
            return handler

        return decorated(*functions) if functions else decorated

    def use(self, middleware: Middleware) -> None:
        """From now on its hooks stand around every enqueue, run and failed attempt."""
        self._hooks.use(middleware)

    def reply(self, queue: str, key: str, value: Any) -> str:
        """Gives the job that waits for this key its reply; tells what became of it."""
        return self.ports.blocking().reply(queue, key, written(value))

    async def areply(self, queue: str, key: str, value: Any) -> str:
        """The same for asyncio."""
        return await self.ports.awaited().reply(queue, key, written(value))

    def schedule(
        self,
        job: Bound[..., Any],
        *args: Any,
        cron: str,
        tz: str = "UTC",
        name: str | None = None,
        missed: Literal["skip", "one", "all"] = "one",
        **kwargs: Any,
    ) -> None:
        """Enqueues the job with these arguments at every tick; said again, it changes.

        `missed` is what to do about ticks that nobody was there to see: skip, one, all.
        """
        spec = job.spec(args, kwargs)
        entry = Schedule(
            queue=job.handler.queue,
            name=name or spec.kind,
            cron=cron,
            zone=tz,
            missed=Missed(missed),
            spec=spec,
        )
        self.ports.blocking().schedule(entry)

    def configure(self, config: QueueConfig) -> None:
        """Makes a queue, or changes its rules under whatever backlog it has."""
        self.ports.blocking().configure(config)

    def work(self, *queues: str, **settings: Any) -> None:
        """Runs jobs until SIGTERM or SIGINT; as `awork`."""
        uvloop.run(self.awork(*queues, **settings))

    async def awork(
        self,
        *queues: str,
        concurrency: int = 20,
        grace: Duration = "28s",
        lease: Duration = "30s",
        until_empty: bool = False,
    ) -> None:
        """Runs jobs of these queues, or of all that have handlers, until it is told.

        At SIGTERM or SIGINT no more are leased; what runs has its grace, and what is
        left then is given back. A second signal ends it at once. So does cancelling.
        """
        worker = self.worker(
            WorkerSettings(
                queues=queues,
                concurrency=concurrency,
                grace=grace,
                lease=lease,
                until_empty=until_empty,
            )
        )
        with stopped_by_signals(worker.stop):
            await worker.run()

    def worker(
        self,
        settings: WorkerSettings,
        port: Callable[[], AsyncPort] | None = None,
    ) -> Worker:
        """A worker that its caller runs and stops; `port` is another way to its jobs."""
        made = self._hooks.port(port or self.ports.for_worker)
        return Worker(self.handlers, made, settings)

    def close(self) -> None:
        self.ports.close()

    async def aclose(self) -> None:
        """Closes the connections of the running loop, too."""
        await self.ports.aclose()
        await asyncio.to_thread(self.ports.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
