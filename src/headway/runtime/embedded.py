"""The whole queue inside an application: blocking, and for asyncio.

Both list the same verbs, each of which is written once (`verbs`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Protocol, Self, TypeVar

import msgspec

from headway.core import defaults
from headway.core.commands import Release
from headway.core.errors import BadValue, RuleBroken
from headway.runtime import operating, verbs
from headway.runtime.door import Door
from headway.runtime.owner import Ask
from headway.runtime.results import Held, taken_back
from headway.runtime.throttler import throttling_of
from headway.runtime.verbs import Request
from headway.runtime.views import Handed

_encode: Final = msgspec.msgpack.Encoder().encode
P = ParamSpec("P")
T = TypeVar("T")


class Asked(Protocol):
    """Whom asks can be put to."""

    def submit(self, ask: Ask) -> Future[Any]: ...


class Link(Asked, Protocol):
    """The way to an owner, wherever it is."""

    def close(self) -> None: ...


class _Caller:
    def __init__(self, link: Link) -> None:
        self._link = link


def ask(link: Link, request: Request[T]) -> T:
    """The answer to a request, read; a broken rule is raised."""
    return _read(request, _submit(link, request.ask).result())


async def ask_async(link: Link, request: Request[T]) -> T:
    """The same for asyncio. A lease that is cancelled while it waits takes no job."""
    future = _submit(link, request.ask)
    try:
        return _read(request, await asyncio.wrap_future(future))
    except asyncio.CancelledError:
        if isinstance(request.ask, Held):
            give_back(link, request.ask, future)
        raise


def _blocking(
    verb: Callable[P, Request[T]],
) -> Callable[Concatenate["_Caller", P], T]:
    def call(self: "_Caller", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return ask(self._link, verb(*args, **kwargs))

    call.__doc__ = verb.__doc__
    call.__name__ = verb.__name__
    return call


def _awaited(
    verb: Callable[P, Request[T]],
) -> Callable[Concatenate["_Caller", P], Awaitable[T]]:
    async def call(self: "_Caller", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await ask_async(self._link, verb(*args, **kwargs))

    call.__doc__ = verb.__doc__
    call.__name__ = verb.__name__
    return call


class Operator(_Caller):
    """What operators ask: lists of all there is, and changes to many jobs at once."""

    queues = _blocking(operating.queues)
    queue = _blocking(operating.queue)
    tenants = _blocking(operating.tenants)
    kinds = _blocking(operating.kinds)
    schedules = _blocking(operating.schedules)
    dead = _blocking(operating.dead)
    running = _blocking(operating.running)
    preview_bulk = _blocking(operating.preview_bulk)
    start_bulk = _blocking(operating.start_bulk)
    stop_bulk = _blocking(operating.stop_bulk)
    bulks = _blocking(operating.bulks)


class AsyncOperator(_Caller):
    """The same for asyncio."""

    queues = _awaited(operating.queues)
    queue = _awaited(operating.queue)
    tenants = _awaited(operating.tenants)
    kinds = _awaited(operating.kinds)
    schedules = _awaited(operating.schedules)
    dead = _awaited(operating.dead)
    running = _awaited(operating.running)
    preview_bulk = _awaited(operating.preview_bulk)
    start_bulk = _awaited(operating.start_bulk)
    stop_bulk = _awaited(operating.stop_bulk)
    bulks = _awaited(operating.bulks)


class Headway(_Caller):
    """A queue in this process. Every call returns when what it did is durable."""

    configure = _blocking(verbs.configure)
    enqueue = _blocking(verbs.enqueue)
    enqueue_many = _blocking(verbs.enqueue_many)
    lease = _blocking(verbs.lease)
    extend = _blocking(verbs.extend)
    ack = _blocking(verbs.ack)
    nack = _blocking(verbs.nack)
    release = _blocking(verbs.release)
    wait = _blocking(verbs.wait)
    reply = _blocking(verbs.reply)
    cancel = _blocking(verbs.cancel)
    redrive = _blocking(verbs.redrive)
    purge = _blocking(verbs.purge)
    pause = _blocking(verbs.pause)
    resume = _blocking(verbs.resume)
    block = _blocking(verbs.block)
    unblock = _blocking(verbs.unblock)
    set_tenant = _blocking(verbs.set_tenant)
    set_kind = _blocking(verbs.set_kind)
    schedule = _blocking(verbs.schedule)
    unschedule = _blocking(verbs.unschedule)
    show = _blocking(verbs.show)
    result = _blocking(verbs.result)
    why = _blocking(verbs.why)
    counts = _blocking(verbs.counts)
    measure = _blocking(verbs.measure)
    autoscale = _blocking(verbs.autoscale)
    history = _blocking(verbs.history)
    follow = _blocking(verbs.follow)

    @property
    def operate(self) -> Operator:
        """The verbs of operators."""
        return Operator(self._link)

    def close(self) -> None:
        """What was asked is answered first."""
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncHeadway(_Caller):
    """The same for asyncio. A lease that is cancelled while it waits takes no job."""

    configure = _awaited(verbs.configure)
    enqueue = _awaited(verbs.enqueue)
    enqueue_many = _awaited(verbs.enqueue_many)
    lease = _awaited(verbs.lease)
    extend = _awaited(verbs.extend)
    ack = _awaited(verbs.ack)
    nack = _awaited(verbs.nack)
    release = _awaited(verbs.release)
    wait = _awaited(verbs.wait)
    reply = _awaited(verbs.reply)
    cancel = _awaited(verbs.cancel)
    redrive = _awaited(verbs.redrive)
    purge = _awaited(verbs.purge)
    pause = _awaited(verbs.pause)
    resume = _awaited(verbs.resume)
    block = _awaited(verbs.block)
    unblock = _awaited(verbs.unblock)
    set_tenant = _awaited(verbs.set_tenant)
    set_kind = _awaited(verbs.set_kind)
    schedule = _awaited(verbs.schedule)
    unschedule = _awaited(verbs.unschedule)
    show = _awaited(verbs.show)
    result = _awaited(verbs.result)
    why = _awaited(verbs.why)
    counts = _awaited(verbs.counts)
    measure = _awaited(verbs.measure)
    autoscale = _awaited(verbs.autoscale)
    history = _awaited(verbs.history)
    follow = _awaited(verbs.follow)

    @property
    def operate(self) -> AsyncOperator:
        """The verbs of operators."""
        return AsyncOperator(self._link)

    async def close(self) -> None:
        """What was asked is answered first."""
        await asyncio.to_thread(self._link.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def open(  # noqa: A001 as the module says: headway.open
    path: str | PathLike[str],
    *,
    throttlers: Mapping[str, str] | None = None,
    throttler_timeout: str | int = defaults.THROTTLER_TIMEOUT_MS,
) -> Headway:
    """Opens the queue in this file, or makes it, and recovers what it holds.

    The first process to open a file owns it and serves the others; when it dies, one of
    them takes over. `throttlers` are functions by queue, as "module:callable", that are
    asked while this process is the owner whether a job may start.
    """
    return Headway(_enter(path, throttlers, throttler_timeout))


async def open_async(
    path: str | PathLike[str],
    *,
    throttlers: Mapping[str, str] | None = None,
    throttler_timeout: str | int = defaults.THROTTLER_TIMEOUT_MS,
) -> AsyncHeadway:
    """The same for asyncio."""
    given = path, throttlers, throttler_timeout
    return AsyncHeadway(await asyncio.to_thread(_enter, *given))


def _enter(
    path: str | PathLike[str],
    throttlers: Mapping[str, str] | None,
    timeout: str | int,
) -> Door:
    return Door(Path(path), throttling_of(throttlers, timeout))


def _submit(link: Link, ask: Ask) -> Future[Any]:
    """Refuses text that can't be written, before anybody has decided upon it."""
    try:
        _encode(ask)
    except UnicodeEncodeError as error:
        rule = "holds half a character, which can't be written"
        raise BadValue("text", error.object[error.start : error.end], rule) from error
    return link.submit(ask)


def _read(request: Request[T], answer: Any) -> T:
    if isinstance(answer, RuleBroken):
        raise answer
    return request.read(answer)


def give_back(link: Asked, held: Held, future: Future[Any]) -> None:
    """The caller is gone: what it was granted in the meantime goes back unused."""

    def release(done: Future[Any]) -> None:
        if not done.cancelled() and done.exception() is None:
            handed = done.result()
            if isinstance(handed, Handed) and handed.jobs:
                link.submit(Release([job.token for job in handed.jobs]))

    future.add_done_callback(release)
    link.submit(taken_back(held))
