"""For the tests of applications: jobs that run at once, are only noted, or in memory.

Each of them takes the place of the app's own queue inside a `with` block.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import msgspec

from headway.client.port import AsyncPort, Port
from headway.core.config import QueueConfig
from headway.core.cron import Schedule
from headway.core.job import JobSpec
from headway.worker.app import AnyPorts, App
from headway.worker.handler import Handler
from headway.worker.ports import MEMORY, Ports


class Enqueued(msgspec.Struct, frozen=True):
    """A job as it was enqueued."""

    id: str
    queue: str
    kind: str
    tenant: str
    arguments: dict[str, Any]
    """By name, as they are in the payload."""
    spec: JobSpec


class Recorder:
    """Notes what would have been enqueued, scheduled or replied."""

    def __init__(self) -> None:
        self.jobs: list[Enqueued] = []
        self.replies: list[tuple[str, str, Any]] = []
        """Queue, key and value."""
        self.schedules: list[Schedule] = []
        self.queues: list[QueueConfig] = []

    def of(self, handler: Handler[..., Any]) -> list[Enqueued]:
        """The jobs of one handler."""
        place = handler.queue, handler.kind
        return [job for job in self.jobs if (job.queue, job.kind) == place]

    def assert_enqueued(
        self, handler: Handler[..., Any], *args: Any, **kwargs: Any
    ) -> Enqueued:
        """The newest job of this call; AssertionError if there is none."""
        wanted = msgspec.json.decode(handler.arguments.write(args, kwargs))
        for job in reversed(self.of(handler)):
            if job.arguments == wanted:
                return job
        there = [job.arguments for job in self.of(handler)]
        raise AssertionError(f"{handler.kind}{wanted} is not among {there}")

    def clear(self) -> None:
        self.jobs.clear()


class _Recording:
    """A port that keeps everything to itself."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def enqueue(self, queue: str, specs: Sequence[JobSpec]) -> list[str]:
        jobs = self._recorder.jobs
        ids = []
        for spec in specs:
            arguments = msgspec.json.decode(spec.payload)
            job_id = f"recorded_{len(jobs) + 1}"
            jobs.append(
                Enqueued(job_id, queue, spec.kind, spec.tenant, arguments, spec)
            )
            ids.append(job_id)
        return ids

    def reply(self, queue: str, reply_key: str, payload: bytes) -> str:
        value = msgspec.json.decode(payload)
        self._recorder.replies.append((queue, reply_key, value))
        return "resolved"

    def schedule(self, entry: Schedule) -> None:
        self._recorder.schedules.append(entry)

    def configure(self, config: QueueConfig) -> None:
        self._recorder.queues.append(config)

    def close(self) -> None:
        """There is nothing to close."""


class _Inline(_Recording):
    """A port that runs each job before it answers."""

    def __init__(self, recorder: Recorder, app: App) -> None:
        super().__init__(recorder)
        self._app = app

    def enqueue(self, queue: str, specs: Sequence[JobSpec]) -> list[str]:
        ids = super().enqueue(queue, specs)
        for spec in specs:
            self._run(queue, spec)
        return ids

    def _run(self, queue: str, spec: JobSpec) -> None:
        handler = self._app.handlers[queue, spec.kind]
        args, kwargs = handler.arguments.read(spec.payload)
        if handler.is_async:
            _run_apart(lambda: asyncio.run(handler.function(*args, **kwargs)))
        else:
            handler.function(*args, **kwargs)


class _Awaited:
    """The same for asyncio."""

    def __init__(self, port: _Recording) -> None:
        self._port = port

    async def enqueue(self, queue: str, specs: Sequence[JobSpec]) -> list[str]:
        return self._port.enqueue(queue, specs)

    async def reply(self, queue: str, reply_key: str, payload: bytes) -> str:
        return self._port.reply(queue, reply_key, payload)

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError("there is no queue to work on: use in_memory")


class _Stand:
    """Ports that lead to a recorder."""

    def __init__(self, port: _Recording) -> None:
        self._port = port

    def blocking(self) -> Port:
        return self._port

    def awaited(self) -> AsyncPort:
        return _Awaited(self._port)

    def for_worker(self) -> NoReturn:
        raise AssertionError("there is no queue to work on: use in_memory")

    def close(self) -> None:
        """There is nothing to close."""

    async def aclose(self) -> None:
        """There is nothing to close."""


@contextmanager
def recording(app: App) -> Iterator[Recorder]:
    """Jobs are noted and do not run."""
    recorder = Recorder()
    with _using(app, _Stand(_Recording(recorder))):
        yield recorder


@contextmanager
def inline(app: App) -> Iterator[Recorder]:
    """Jobs run at once in whoever enqueues them, who meets their exceptions.

    Arguments go through JSON and back, as they would. Delays, retries and promises do
    not matter here.
    """
    recorder = Recorder()
    with _using(app, _Stand(_Inline(recorder, app))):
        yield recorder


@contextmanager
def in_memory(app: App) -> Iterator[App]:
    """The real queue, in memory: `app.work(until_empty=True)` runs what is ready."""
    ports = Ports(MEMORY)
    with _using(app, ports):
        try:
            yield app
        finally:
            ports.close()


@contextmanager
def _using(app: App, ports: AnyPorts) -> Iterator[None]:
    own, app.ports = app.ports, ports
    try:
        yield
    finally:
        app.ports = own


def _run_apart(call: Callable[[], Any]) -> None:
    """In a thread: the caller's own loop may be running."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # raised again where it belongs
            raised.append(error)

    thread = threading.Thread(target=run, name="headway-inline")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
