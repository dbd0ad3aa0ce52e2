"""Middleware: what an app does around every enqueue, run and failed attempt.

A hook is a generator with one `yield`: what stands before it happens before, what stands
after it afterwards, and an error comes out of the `yield`. No hook can lose a job.
"""

import inspect
import logging
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from functools import partial
from typing import Any, Final, TypeVar, cast

import msgspec

from headway.client.port import AsyncPort
from headway.core.errors import BadValue
from headway.core.spec import JobSpec
from headway.wire.work import Failure, Leased

log: Final = logging.getLogger("headway.worker")
T = TypeVar("T")
_HOOKS: Final = ("enqueue", "run", "retry", "settle")


class Sending:
    """Jobs of one queue on their way into it."""

    __slots__ = ("ids", "queue", "specs")

    def __init__(self, queue: str, specs: list[JobSpec]) -> None:
        self.queue = queue
        self.specs = specs
        """A hook may put others in their place, each for one."""
        self.ids: list[str] = []
        """After the `yield`, in the same order."""

    def add_headers(self, headers: Mapping[str, str]) -> None:
        """Each job carries them to its worker; what it has already goes before."""
        self.specs = [
            msgspec.structs.replace(spec, headers={**headers, **(spec.headers or {})})
            for spec in self.specs
        ]


class Failing:
    """An attempt that failed, and what is to become of its job."""

    __slots__ = ("error", "failure", "job")

    def __init__(self, job: Leased, error: BaseException) -> None:
        self.job = job
        self.error = error
        self.failure: Failure | None = None
        """After the `yield`: what the queue is told. Without `retry_in` and `bury` the
        job's strategy says what follows."""


class Settlement:
    """What the queue is told in one request of jobs that have ended."""

    __slots__ = ("tokens", "verb")

    def __init__(self, verb: str, tokens: list[str]) -> None:
        self.verb = verb
        """Such as "ack", "nack" or "wait"."""
        self.tokens = tokens


class Middleware:
    """To be derived from, with any of these; given to `app.use`.

    They are called in the order in which they were given, and end in the opposite one.
    """

    def enqueue(self, sending: Sending) -> Iterator[None]:
        """Around an enqueue, in whoever calls it. Raises before: nothing is enqueued.

        What it raises afterwards is logged: the jobs are there.
        """
        yield

    def run(self, job: Leased) -> Iterator[None] | AsyncIterator[None]:
        """Around a handler, on the worker's event loop, and so quick or async itself.

        Context variables that it sets are there in the handler. What it raises is the
        handler's failure; an error of the handler can be replaced, but not taken away.
        """
        return iter((None,))

    def retry(self, failing: Failing) -> Iterator[None]:
        """Around what follows a failed attempt. What it raises is logged."""
        yield

    def settle(self, settlement: Settlement) -> Iterator[None]:
        """Around each time the queue is told what has ended. What it raises is logged."""
        yield


Entered = AbstractContextManager[None] | AbstractAsyncContextManager[None]


class Hooks:
    """All middleware of an app; with none it is four empty lists."""

    def __init__(self) -> None:
        self._enqueues: list[Callable[[Sending], AbstractContextManager[None]]] = []
        self.runs: list[Callable[[Leased], Entered]] = []
        self.has_async_runs = False
        self.retries: list[Callable[[Failing], AbstractContextManager[None]]] = []
        self._settles: list[Callable[[Settlement], AbstractContextManager[None]]] = []

    def use(self, middleware: Middleware) -> None:
        found = {
            name: hook
            for name in _HOOKS
            if (hook := _own(middleware, name)) is not None
        }
        if not found:
            name = type(middleware).__name__
            raise BadValue("middleware", name, f"has none of {', '.join(_HOOKS)}")
        lists: dict[str, list[Any]] = {
            "enqueue": self._enqueues,
            "run": self.runs,
            "retry": self.retries,
            "settle": self._settles,
        }
        is_awaited = inspect.isasyncgenfunction(found.get("run"))
        contexts: dict[str, Any] = {}
        for name, hook in found.items():
            if name == "run" and is_awaited:
                contexts[name] = asynccontextmanager(hook)
            elif inspect.isgeneratorfunction(hook):
                contexts[name] = contextmanager(hook)
            else:
                raise BadValue(name, hook, "a hook is a generator with one yield")
        for name, context in contexts.items():
            lists[name].append(context)
        self.has_async_runs |= is_awaited

    def send(
        self,
        queue: str,
        specs: list[JobSpec],
        put: Callable[[str, list[JobSpec]], list[str]],
    ) -> list[str]:
        """Enqueues between the hooks."""
        if not self._enqueues:
            return put(queue, specs)
        with self._around(Sending(queue, specs)) as sending:
            sending.ids = put(queue, sending.specs)
        return sending.ids

    async def asend(
        self,
        queue: str,
        specs: list[JobSpec],
        put: Callable[[str, list[JobSpec]], Awaitable[list[str]]],
    ) -> list[str]:
        """The same for asyncio."""
        if not self._enqueues:
            return await put(queue, specs)
        with self._around(Sending(queue, specs)) as sending:
            sending.ids = await put(queue, sending.specs)
        return sending.ids

    @contextmanager
    def _around(self, sending: Sending) -> Iterator[Sending]:
        count = len(sending.specs)
        entered: list[AbstractContextManager[None]] = []
        with _ended(entered, "an enqueue"):
            for hook in self._enqueues:
                _enter(hook(sending), entered)
            if len(sending.specs) != count:
                rule = f"there were {count}, and a hook may not change that"
                raise BadValue("specs", len(sending.specs), rule)
            yield sending

    async def around_run(self, job: Leased, call: Callable[[], Awaitable[T]]) -> T:
        """Runs between the hooks; an error that one of them keeps is raised anyway."""
        raised: BaseException | None = None
        async with AsyncExitStack() as entered:
            try:
                for hook in self.runs:
                    context = hook(job)
                    if isinstance(context, AbstractContextManager):
                        entered.enter_context(context)
                    else:
                        await entered.enter_async_context(context)
                value = await call()
            except BaseException as error:
                raised = error
                raise
        if raised is not None:
            raise raised
        return value

    async def around_retry(
        self, job: Leased, error: BaseException, judged: Awaitable[Failure]
    ) -> Failure:
        """What becomes of a failed attempt, whatever the hooks do."""
        failing = Failing(job, error)
        entered = _entered([partial(hook, failing) for hook in self.retries], "a retry")
        with _ended(entered, "a retry"):
            failing.failure = failure = await judged
        return failure

    def port(self, make: Callable[[], AsyncPort]) -> Callable[[], AsyncPort]:
        """Ports that pass the hooks when they tell what has ended."""
        if not self._settles:
            return make
        return lambda: cast(AsyncPort, _Settling(make(), self._settles))


class _Settling:
    """A port, and hooks around the three verbs that settle."""

    def __init__(
        self,
        port: AsyncPort,
        hooks: list[Callable[[Settlement], AbstractContextManager[None]]],
    ) -> None:
        self._port = port
        self._hooks = hooks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    async def ack(self, tokens: Sequence[str], *args: Any, **kwargs: Any) -> Any:
        with self._around("ack", list(tokens)):
            return await self._port.ack(tokens, *args, **kwargs)

    async def nack(self, failures: Sequence[Failure]) -> Any:
        with self._around("nack", [failure.token for failure in failures]):
            return await self._port.nack(failures)

    async def wait(self, token: str, *args: Any, **kwargs: Any) -> Any:
        with self._around("wait", [token]):
            return await self._port.wait(token, *args, **kwargs)

    @contextmanager
    def _around(self, verb: str, tokens: list[str]) -> Iterator[None]:
        settlement = Settlement(verb, tokens)
        hooks = [partial(hook, settlement) for hook in self._hooks]
        with _ended(_entered(hooks, "a settlement"), "a settlement"):
            yield


def _entered(
    hooks: Iterable[Callable[[], AbstractContextManager[None]]], what: str
) -> list[AbstractContextManager[None]]:
    """Enters what can be entered: what they stand around happens in any case."""
    entered: list[AbstractContextManager[None]] = []
    for hook in hooks:
        try:
            _enter(hook(), entered)
        except Exception:
            log.exception("a hook of %s failed", what)
    return entered


def _enter(
    context: AbstractContextManager[None], entered: list[AbstractContextManager[None]]
) -> None:
    context.__enter__()
    entered.append(context)


@contextmanager
def _ended(entered: list[AbstractContextManager[None]], what: str) -> Iterator[None]:
    """Ends each hook after what they stand around has happened; none can undo it."""
    try:
        yield
    except BaseException as error:
        _end(entered, what, error)
        raise
    _end(entered, what, None)


def _end(
    entered: list[AbstractContextManager[None]], what: str, raised: BaseException | None
) -> None:
    trace = None if raised is None else raised.__traceback__
    for context in reversed(entered):
        try:
            context.__exit__(None if raised is None else type(raised), raised, trace)
        except Exception as error:
            if error is not raised:
                log.exception("a hook of %s failed", what)


def _own(middleware: object, name: str) -> Callable[..., Any] | None:
    """The hook, if somebody has written one."""
    if getattr(type(middleware), name, None) is getattr(Middleware, name):
        return None
    hook = getattr(middleware, name, None)
    return hook if callable(hook) else None
