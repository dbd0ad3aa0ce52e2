"""A function whose calls can be enqueued."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from typing import (
    Any,
    Concatenate,
    Final,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    Unpack,
)

from headway.client.port import AsyncPort, Port
from headway.core.durations import parse_ms
from headway.core.errors import BadValue
from headway.core.job import JobSpec
from headway.core.retry import GiveUp, Retry
from headway.wire.values import BATCH_MAX
from headway.worker.hooks import Hooks
from headway.worker.options import EnqueueOptions, spec_fields
from headway.worker.outcomes import RetryLogic
from headway.worker.payloads import Arguments

P = ParamSpec("P")
R = TypeVar("R")
Q = TypeVar("Q")
BATCH_BYTES: Final = 4 << 20
"""Of payloads in one request."""
Call = tuple[Any, ...] | Mapping[str, Any]
"""The arguments of one call, by position or by name."""


class Ports(Protocol):
    """Who leads to the queue."""

    def blocking(self) -> Port: ...
    def awaited(self) -> AsyncPort: ...


class Bound(Generic[P, R]):
    """A handler with what is said of the jobs that it enqueues from here."""

    def __init__(
        self,
        handler: "Handler[P, R]",
        options: dict[str, Any],
        ports: Callable[[], Ports],
    ) -> None:
        self._handler = handler
        self._options = options
        self._fields = spec_fields(options)
        self._fields["kind"] = handler.kind
        self._ports = ports

    @property
    def handler(self) -> "Handler[P, R]":
        return self._handler

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """Enqueues the call; answers the job's id when it is on stable storage."""
        spec = self.spec(args, kwargs)
        put = self._ports().blocking().enqueue
        return self._handler.hooks.send(self._handler.queue, [spec], put)[0]

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """The same for asyncio."""
        spec = self.spec(args, kwargs)
        put = self._ports().awaited().enqueue
        hooks = self._handler.hooks
        return (await hooks.asend(self._handler.queue, [spec], put))[0]

    def enqueue_many(
        self, calls: Iterable[Call], *, has_progress: bool = False
    ) -> list[str]:
        """Enqueues calls, 1,000 at a time; each thousand wholly or not at all.

        A call is a tuple of arguments, or a mapping of them by name.
        """
        port, queue = self._ports().blocking(), self._handler.queue
        ids: list[str] = []
        with _progress(self._handler.kind, calls, has_progress) as advance:
            for specs in self._batches(calls):
                ids += self._handler.hooks.send(queue, specs, port.enqueue)
                advance(len(ids))
        return ids

    async def aenqueue_many(self, calls: Iterable[Call]) -> list[str]:
        """The same for asyncio."""
        put, queue = self._ports().awaited().enqueue, self._handler.queue
        send = self._handler.hooks.asend
        return [id_ for s in self._batches(calls) for id_ in await send(queue, s, put)]

    def spec(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> JobSpec:
        """The job that a call is."""
        payload = self._handler.arguments.write(args, kwargs)
        tenant = self._options.get("tenant", "")
        if callable(tenant):
            tenant = tenant(*args, **kwargs)
        return JobSpec(payload=payload, is_json=True, tenant=tenant, **self._fields)

    def _batches(self, calls: Iterable[Call]) -> Iterator[list[JobSpec]]:
        batch: list[JobSpec] = []
        size = 0
        for call in calls:
            if isinstance(call, Mapping):
                spec = self.spec((), call)
            else:
                spec = self.spec(_by_position(call), {})
            if batch and (len(batch) == BATCH_MAX or size > BATCH_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(spec)
            size += len(spec.payload)
        if batch:
            yield batch


class Handler(Bound[P, R]):
    """The decorated function: called it is itself, and its calls can be enqueued."""

    def __init__(
        self,
        function: Callable[P, R],
        options: dict[str, Any],
        ports: Callable[[], Ports],
        hooks: Hooks | None = None,
    ) -> None:
        self.function = function
        self.hooks = hooks or Hooks()
        """What its app does around its jobs."""
        self.kind = str(options.get("kind") or getattr(function, "__name__", ""))
        if not self.kind:
            raise BadValue("kind", function, "a handler without a name needs a kind")
        self.queue: str = options.get("queue") or "default"
        self.arguments = Arguments(function)
        self.is_async = inspect.iscoroutinefunction(function)
        self.is_isolated = options.get("isolate") == "process"
        timeout = options.get("timeout")
        self.timeout_s = (
            None if timeout is None else parse_ms(timeout, "timeout") / 1_000
        )
        """How long its function may run."""
        self.continuation: Callable[..., Any] | None = None
        retry = options.get("retry")
        if retry is GiveUp:
            options["retry"] = retry = GiveUp()
        if retry is not None and not isinstance(retry, Retry) and not callable(retry):
            raise BadValue("retry", retry, "is neither a strategy nor logic")
        self.retry_logic: RetryLogic | None = (
            None if isinstance(retry, Retry) else retry
        )
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", self.kind)
        self.__module__ = function.__module__
        self.__wrapped__ = function
        super().__init__(self, options, ports)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def options(self, **options: Unpack[EnqueueOptions]) -> Bound[P, R]:
        """The same handler, for jobs of which this is said as well."""
        return Bound(self, {**self._options, **options}, self._ports)

    def on_reply(
        self, function: Callable[Concatenate[Q, P], Any]
    ) -> Callable[Concatenate[Q, P], Any]:
        """Goes on with the job when the reply that it waits for is there."""
        if self.continuation is not None:
            raise BadValue("on_reply", self.kind, "has one already")
        self.reply_arguments = Arguments(function, has_reply=True)
        self.continuation = function
        return function


def _by_position(call: object) -> tuple[Any, ...]:
    if isinstance(call, tuple):
        return call
    rule = "a call is a tuple of arguments, or a mapping of them by name"
    raise BadValue("calls", call, rule)


@contextmanager
def _progress(
    what: str, calls: Iterable[Call], is_shown: bool
) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, where somebody asked for it."""
    if not is_shown:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    total = len(calls) if isinstance(calls, Sized) else None
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)
