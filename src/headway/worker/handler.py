"""A function whose calls can be enqueued."""

import inspect
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar, Unpack

from msgspec import UNSET

from headway.core.durations import parse_ms
from headway.core.errors import BadValue
from headway.core.retry import GiveUp, Retry
from headway.core.spec import JobSpec
from headway.wire.work import Leased
from headway.worker.hooks import Hooks
from headway.worker.many import Call, EnqueuedMany, EnqueueFailed, Progress, Sending
from headway.worker.options import EnqueueOptions, spec_fields
from headway.worker.outcomes import RetryLogic
from headway.worker.payloads import Arguments, Returned
from headway.worker.results import Enqueued, Ports

P = ParamSpec("P")
R = TypeVar("R")
Q = TypeVar("Q")
_KEPT_ON_A_MOVE: Final = ("slo_ms", "priority", "cost", "timeout_ms", "attempts_max")


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

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Enqueued[R]:
        """Enqueues the call; answers the job's id when it is on stable storage."""
        spec = self.spec(args, kwargs)
        put = self._ports().blocking().enqueue
        ids = self._handler.hooks.send(self._handler.queue, [spec], put)
        return self.enqueued(ids[0])

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Enqueued[R]:
        """The same for asyncio."""
        spec = self.spec(args, kwargs)
        put = self._ports().awaited().enqueue
        ids = await self._handler.hooks.asend(self._handler.queue, [spec], put)
        return self.enqueued(ids[0])

    def enqueued(self, job: str) -> Enqueued[R]:
        """A job of this handler by its id: to be asked for its result."""
        return Enqueued(job, self._handler.read_result, self._ports)

    def enqueue_many(
        self,
        calls: Iterable[Call],
        *,
        progress: Progress = False,
        resume: EnqueueFailed | None = None,
    ) -> EnqueuedMany[R]:
        """Enqueues calls as they come, 1,000 at a time; each batch wholly or not at all.

        A call is a tuple of arguments, or a mapping of them by name. Raises
        EnqueueFailed if only some were accepted; it says how many, and can be resumed.
        """
        port, queue = self._ports().blocking(), self._handler.queue
        send = self._handler.hooks.send
        sending = Sending(self, self._options.get("key"), resume)
        put = sending.by(port.enqueue)
        with sending.under_way(self._handler.kind, calls, progress):
            for call in calls:
                if batch := sending.add(call):
                    sending.accepted(send(queue, batch, put))
            if batch := sending.rest():
                sending.accepted(send(queue, batch, put))
        return sending.jobs

    async def aenqueue_many(
        self,
        calls: Iterable[Call] | AsyncIterable[Call],
        *,
        progress: Progress = False,
        resume: EnqueueFailed | None = None,
    ) -> EnqueuedMany[R]:
        """The same for asyncio; calls may come from an async generator, too."""
        port, queue = self._ports().awaited(), self._handler.queue
        send = self._handler.hooks.asend
        sending = Sending(self, self._options.get("key"), resume)
        put = sending.by(port.enqueue)
        with sending.under_way(self._handler.kind, calls, progress):
            async for call in _each(calls):
                if batch := sending.add(call):
                    sending.accepted(await send(queue, batch, put))
            if batch := sending.rest():
                sending.accepted(await send(queue, batch, put))
        return sending.jobs

    def spec(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> JobSpec:
        """The job that a call is."""
        payload = self._handler.arguments.write(args, kwargs)
        tenant = self._options.get("tenant", "")
        if callable(tenant):
            tenant = tenant(*args, **kwargs)
        fields = self._fields
        key = self._options.get("key")
        if callable(key):
            fields = {**fields, "idempotency_key": key(*args, **kwargs)}
        return JobSpec(payload=payload, is_json=True, tenant=tenant, **fields)

    def moved(self, job: Leased, payload: bytes, delay_ms: int) -> JobSpec:
        """The job as it goes on in another queue; told twice, it is the same one."""
        fields = {name: self._fields.get(name) for name in _KEPT_ON_A_MOVE}
        told = {name: value for name, value in fields.items() if value is not None}
        return JobSpec(
            payload=payload,
            is_json=True,
            kind=job.kind,
            tenant=job.tenant,
            labels=None if job.labels is UNSET else job.labels,
            headers=None if job.headers is UNSET else job.headers,
            delay_ms=delay_ms,
            idempotency_key=f"{job.id}.{job.attempt}.moved",
            **told,
        )


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

    def read_result(self, value: bytes) -> Any:
        """What the function that ends its jobs has returned."""
        return self._returned.read(value)

    @cached_property
    def _returned(self) -> Returned:
        return Returned(self.continuation or self.function)

    def on_reply(
        self, function: Callable[Concatenate[Q, P], Any]
    ) -> Callable[Concatenate[Q, P], Any]:
        """Goes on with the job when the reply that it waits for is there."""
        if self.continuation is not None:
            raise BadValue("on_reply", self.kind, "has one already")
        self.reply_arguments = Arguments(function, has_reply=True)
        self.continuation = function
        return function


async def _each(calls: Iterable[Call] | AsyncIterable[Call]) -> AsyncIterator[Call]:
    if isinstance(calls, AsyncIterable):
        async for call in calls:
            yield call
    else:
        for call in calls:
            yield call
