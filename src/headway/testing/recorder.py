"""Jobs that are only noted, or run in whoever enqueues them."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, NoReturn

import msgspec
from msgspec import UNSET

from headway.client.port import AsyncPort, Port
from headway.core.config import QueueConfig
from headway.core.cron import Schedule
from headway.core.errors import NoResult
from headway.core.spec import JobSpec
from headway.wire.jobs import ResultShown
from headway.wire.work import Leased
from headway.worker.app import AnyPorts, App
from headway.worker.handler import Handler
from headway.worker.outcomes import WaitFor, current
from headway.worker.payloads import returned
from headway.worker.results import ResultTimeout


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
        self.results: dict[str, Any] = {}
        """What jobs have returned, by id: to be filled by tests that only record."""

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

    def result(self, job: str, *, wait_ms: int = 0) -> ResultShown:
        """At once: nothing that has not run will run."""
        specs = [one.spec for one in self._recorder.jobs if one.id == job]
        if not specs or specs[0].result_ms is None:
            raise NoResult(f"no result of job {job} was asked for")
        if job not in self._recorder.results:
            raise ResultTimeout(job, "does not run here; put its result in `results`")
        told = returned(self._recorder.results[job])
        problem = None if told.problem is UNSET else told.problem
        return ResultShown(id=job, state="done", value=told.value, problem=problem)

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
        for job_id, spec in zip(ids, specs, strict=True):
            value = copy_context().run(self._run, job_id, queue, spec)
            if not isinstance(value, WaitFor):
                self._recorder.results[job_id] = value
        return ids

    def _run(self, job_id: str, queue: str, spec: JobSpec) -> Any:
        handler = self._app.handlers[queue, spec.kind]
        args, kwargs = handler.arguments.read(spec.payload)
        job = _leased(job_id, queue, spec)
        current.set(job)

        async def call() -> Any:
            value = handler.function(*args, **kwargs)
            return await value if handler.is_async else value

        running = handler.hooks.around_run(job, call)
        if handler.is_async or handler.hooks.has_async_runs:
            return run_apart(lambda: asyncio.run(running))
        # Nothing of it waits for anything, so it ends at the first step.
        try:
            running.send(None)
        except StopIteration as ended:
            return ended.value
        raise AssertionError("it waits after all")


class _Awaited:
    """The same for asyncio."""

    def __init__(self, port: _Recording) -> None:
        self._port = port

    async def enqueue(self, queue: str, specs: Sequence[JobSpec]) -> list[str]:
        return self._port.enqueue(queue, specs)

    async def result(self, job: str, *, wait_ms: int = 0) -> ResultShown:
        return self._port.result(job, wait_ms=wait_ms)

    async def reply(self, queue: str, reply_key: str, payload: bytes) -> str:
        return self._port.reply(queue, reply_key, payload)

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(
            "there is no queue to work on: use in_memory or virtual_time"
        )


class _Stand:
    """Ports that lead to a recorder."""

    def __init__(self, port: _Recording) -> None:
        self._port = port

    def blocking(self) -> Port:
        return self._port

    def awaited(self) -> AsyncPort:
        return _Awaited(self._port)

    def for_worker(self) -> NoReturn:
        raise AssertionError(
            "there is no queue to work on: use in_memory or virtual_time"
        )

    def close(self) -> None:
        """There is nothing to close."""

    async def aclose(self) -> None:
        """There is nothing to close."""


@contextmanager
def recording(app: App) -> Iterator[Recorder]:
    """Jobs are noted and do not run."""
    recorder = Recorder()
    with using(app, _Stand(_Recording(recorder))):
        yield recorder


@contextmanager
def inline(app: App) -> Iterator[Recorder]:
    """Jobs run at once in whoever enqueues them, who meets their exceptions.

    Arguments go through JSON and back, as they would. Delays, retries and promises do
    not matter here.
    """
    recorder = Recorder()
    with using(app, _Stand(_Inline(recorder, app))):
        yield recorder


@contextmanager
def using(app: App, ports: AnyPorts) -> Iterator[None]:
    """Takes the place of the app's own queue inside the block."""
    own, app.ports = app.ports, ports
    try:
        yield
    finally:
        app.ports = own


def _leased(job_id: str, queue: str, spec: JobSpec) -> Leased:
    return Leased(
        id=job_id,
        token="",
        queue=queue,
        kind=spec.kind,
        tenant=spec.tenant,
        attempt=1,
        attempts_max=1,
        lease_until_ms=0,
        payload=msgspec.Raw(spec.payload),
        headers=msgspec.UNSET if spec.headers is None else spec.headers,
        labels=msgspec.UNSET if spec.labels is None else spec.labels,
    )


def run_apart(call: Callable[[], Any]) -> Any:
    """In a thread: the caller's own loop may be running."""
    values: list[Any] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            values.append(call())
        except BaseException as error:  # raised again where it belongs
            raised.append(error)

    thread = threading.Thread(
        target=copy_context().run, args=(run,), name="headway-inline"
    )
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return values[0]
