"""One attempt at a job: the handler is called, and what comes of it becomes a value."""

import asyncio
import inspect
import logging
import traceback
from base64 import b64decode
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, Final, NamedTuple

from msgspec import UNSET, Raw

from headway.core.durations import parse_ms
from headway.core.errors import LeaseLost
from headway.core.retry import GiveUp
from headway.core.spec import JobSpec
from headway.wire.work import Failure, Leased, ResultBody
from headway.worker.handler import Handler
from headway.worker.isolation import IsolatedFailure, run_isolated
from headway.worker.outcomes import (
    Bury,
    ReplyTimedOut,
    Retry,
    TimedOut,
    Verdict,
    WaitFor,
    current,
    ended_unheard,
    too_long,
)
from headway.worker.payloads import Arguments, Unreadable, returned
from headway.worker.threads import Threads

log: Final = logging.getLogger("headway.worker")
ERROR_CHARACTERS_MAX: Final = 8_192
"""Of an error's text; its first line and the end of its traceback are kept."""
_LINE_MAX: Final = 1_024
_PLAIN: Final = (TimedOut, IsolatedFailure, LeaseLost, ReplyTimedOut)
"""Errors whose text says all: they were raised by nobody's code."""


class Done(NamedTuple):
    token: str
    result: ResultBody | None = None


class Waits(NamedTuple):
    """The handler has asked somebody outside, and a reply will come."""

    token: str
    wait: WaitFor
    is_done_on_reply: bool


class Moves(NamedTuple):
    """The job goes on as another one, in another queue."""

    token: str
    queue: str
    spec: JobSpec


Outcome = Done | Failure | Waits | Moves


async def attempt(
    handler: Handler[..., Any] | None,
    job: Leased,
    threads: Threads,
    *,
    is_isolated: bool = False,
) -> Outcome:
    """Runs the job's handler. Raises CancelledError if this task is cancelled."""
    if handler is None:
        return _buried(job, f"no handler for kind {job.kind!r} in this worker")
    try:
        function, args, kwargs = called(handler, job)
    except Unreadable as error:
        return _buried(job, told(str(error)))
    current.set(job)
    put_off = await _asked_first(handler, job, threads)
    if put_off is not None:
        return put_off
    run = partial(_run, handler, partial(function, *args, **kwargs), threads)
    if is_isolated or handler.is_isolated:
        run = partial(run_isolated, handler, job)
    try:
        if handler.hooks.runs:
            value = await handler.hooks.around_run(job, run)
        else:
            value = await run()
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return await _fallen(handler, job, error, threads)
    except BaseException as error:  # it harms its own job only
        return await _fallen(handler, job, error, threads)
    if isinstance(value, WaitFor):
        has_more = handler.continuation is not None
        return Waits(job.token, value, not has_more)
    return Done(job.token, _result(job, value))


def _result(job: Leased, value: Any) -> ResultBody | None:
    """What is told of it, if anybody asks; a process of its own has told it already."""
    if job.wants_result is not True:
        return None
    return value if isinstance(value, ResultBody) else returned(value)


def _buried(job: Leased, reason: str) -> Failure:
    log.error("job %s can't be run: %s", job.id, reason, extra={"of": job})
    return Failure(job.token, reason, bury=True)


def called(
    handler: Handler[..., Any], job: Leased
) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
    """What is to be called, and with what."""
    reply = _content(job.reply, job.reply_base64)
    payload = _content(job.payload, job.payload_base64)
    payload = b"{}" if payload in (None, b"null", b"") else payload
    assert payload is not None
    if reply is None:
        return handler.function, *handler.arguments.read(payload)
    if handler.continuation is None:
        raise Unreadable(f"kind {handler.kind!r} has no on_reply to go on with")
    arguments: Arguments = handler.reply_arguments
    args, kwargs = arguments.read(payload)
    return handler.continuation, [arguments.read_reply(reply), *args], kwargs


def _content(plain: Any, base64: Any) -> bytes | None:
    if plain is not UNSET:
        return bytes(plain)
    return None if base64 is UNSET else b64decode(base64)


async def _run(
    handler: Handler[..., Any], call: "partial[Any]", threads: Threads
) -> Any:
    timeout_s = handler.timeout_s
    if asyncio.iscoroutinefunction(call.func):
        return await _awaited(call, timeout_s)
    errand = threads.start(call)
    if timeout_s is not None:
        await asyncio.wait({errand.outcome}, timeout=timeout_s)
        if not errand.outcome.done() and threads.abandon(errand):
            text = (
                "its thread can't be stopped and is left to itself; another replaces it"
            )
            log.warning("%s: %s: %s", handler.kind, too_long(timeout_s), text)
            raise TimedOut(f"{too_long(timeout_s)}; {text}")
    value, error = await errand.outcome
    if error is not None:
        raise error
    # A function may hide that it is async, behind a decorator for instance.
    return await value if inspect.isawaitable(value) else value


async def _awaited(call: "partial[Any]", timeout_s: float | None) -> Any:
    if timeout_s is None:
        return await call()
    try:
        async with asyncio.timeout(timeout_s) as scope:
            return await call()
    except TimeoutError as error:
        if scope.expired():
            raise TimedOut(too_long(timeout_s)) from error
        raise


async def _fallen(
    handler: Handler[..., Any], job: Leased, error: BaseException, threads: Threads
) -> Failure | Moves:
    queues: list[str] = []
    judged = _failed(handler, job, error, threads, queues)
    if handler.hooks.retries:
        failure = await handler.hooks.around_retry(job, error, judged)
    else:
        failure = await judged
    log.warning("an attempt failed: %s", failure.error.partition("\n")[0])
    return _moved(handler, job, failure, queues) or failure


async def _asked_first(
    handler: Handler[..., Any], job: Leased, threads: Threads
) -> Failure | Moves | None:
    """What the retry logic says of an attempt that ended where no worker was at hand.

    None means: run the handler now.
    """
    error = None if handler.retry_logic is None else ended_unheard(job)
    if error is None:
        return None
    queues: list[str] = []
    failure = await _failed(handler, job, error, threads, queues, is_unheard=True)
    if failure.bury:
        return failure
    moves = _moved(handler, job, failure, queues)
    if moves is not None:
        return moves
    if not failure.retry_in and failure.payload is UNSET:
        return None
    failure.unused = True
    return failure


async def _failed(
    handler: Handler[..., Any],
    job: Leased,
    error: BaseException,
    threads: Threads,
    queues: list[str],
    *,
    is_unheard: bool = False,
) -> Failure:
    """What to tell of it; a queue that it is to go on in is added to `queues`."""
    failure = Failure(job.token, error_text(error))
    if handler.retry_logic is None:
        return failure
    asked = partial(handler.retry_logic, job, error, job.attempt - is_unheard)
    verdict, broken = await threads.start(asked).outcome
    if broken is None:
        try:
            _judge(handler, failure, verdict)
            if isinstance(verdict, Retry) and verdict.queue not in (None, job.queue):
                queues.append(str(verdict.queue))
            return failure
        except Exception as unusable:  # the user's logic; told, not raised
            broken = unusable
    log.error("%s: its retry logic failed: %r", handler.kind, broken)
    failure.error = told(f"{failure.error}\nIts retry logic failed: {broken!r}")
    return failure


def _moved(
    handler: Handler[..., Any], job: Leased, failure: Failure, queues: list[str]
) -> Moves | None:
    if not queues:
        return None
    payload = failure.payload if failure.payload is not UNSET else job.payload
    delay_ms = 0 if failure.retry_in is None else parse_ms(failure.retry_in, "in_")
    spec = handler.moved(job, b"" if payload is UNSET else bytes(payload), delay_ms)
    return Moves(job.token, queues[0], spec)


def _judge(handler: Handler[..., Any], failure: Failure, verdict: Verdict) -> None:
    match verdict:
        case None:
            return
        case Retry(in_=delay, payload=payload):
            if delay is not None:
                failure.retry_in = parse_ms(delay, "in_")
            if payload is not None:
                failure.payload = Raw(handler.arguments.write((), payload))
        case Bury(reason=reason):
            failure.bury = True
            if reason:
                failure.error = told(f"{reason}\n{failure.error}")
        case GiveUp():
            failure.bury = True
        case _ if verdict is GiveUp:
            failure.bury = True
        case _:
            raise TypeError(f"{verdict!r} is no Retry, Bury or GiveUp")


def error_text(error: BaseException) -> str:
    """What went wrong in the first line, then the end of its traceback."""
    if isinstance(error, _PLAIN):
        return told(str(error))
    line = "".join(traceback.format_exception_only(error)).strip()[:_LINE_MAX]
    trace = error.__traceback__
    while trace is not None and _is_ours(trace):
        trace = trace.tb_next
    text = "".join(traceback.format_exception(type(error), error, trace))
    room = ERROR_CHARACTERS_MAX - len(line) - 8
    return told(f"{line}\n{text if len(text) <= room else '…' + text[-room:]}")


def _is_ours(trace: TracebackType) -> bool:
    """Our own frames say nothing about the handler."""
    return trace.tb_frame.f_globals.get("__package__") == __package__


def told(text: str) -> str:
    """Text that can be sent: not too long, and without half characters."""
    return text[:ERROR_CHARACTERS_MAX].encode("utf-8", "replace").decode()
