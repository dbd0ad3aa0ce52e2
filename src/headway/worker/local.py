"""A queue of this machine, asked as a server is: no server, no HTTP."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Concatenate, Final, ParamSpec, TypeVar

from msgspec import UNSET, Raw

from headway.core.commands import (
    Ack,
    Configure,
    Enqueue,
    Extend,
    Lease,
    PutSchedule,
    Release,
)
from headway.core.commands import Settled as CoreSettled
from headway.core.config import QueueConfig
from headway.core.errors import LeaseLost, UnknownJob, UnknownQueue
from headway.core.spec import JobError, JobSpec
from headway.runtime import verbs
from headway.runtime.embedded import Link, ask, ask_async
from headway.runtime.errors import RuntimeFailure
from headway.runtime.results import Ended, Watch
from headway.runtime.verbs import Request
from headway.runtime.views import LeasedJob
from headway.wire.jobs import FailedAttempt, ResultShown
from headway.wire.work import Failure, Leased, ResultBody, Settled

P = ParamSpec("P")
LAST_WORDS_S: Final = 2.0
T = TypeVar("T")


def enqueue(queue: str, specs: Sequence[JobSpec]) -> Request[list[str]]:
    """All of the jobs or none; answers their ids."""
    return Request(Enqueue(queue, list(specs)), lambda got: [str(n) for n in got.seqs])


def lease(
    queues: Sequence[str],
    most: int,
    *,
    wait_ms: int = 0,
    lease_ms: int | None = None,
    worker: str = "",
) -> Request[list[Leased]]:
    """Up to `most` jobs of the queues (of all, if none is named), most urgent first."""
    command = Lease(worker, tuple(queues) or None, most, lease_ms)
    command.wait_ms = wait_ms
    return Request(command, lambda got: [_leased(job) for job in got.jobs])


def ack(
    tokens: Sequence[str], results: Mapping[str, ResultBody] | None = None
) -> Request[Settled]:
    """The jobs are done; with the results of those that want theirs told."""
    told = {int(token): one.told() for token, one in (results or {}).items()}
    return Request(Ack([int(token) for token in tokens], told), _settled)


def result(job: str, *, wait_ms: int = 0) -> Request[ResultShown]:
    """What became of a job; held back for so long while it has not ended."""
    if not job.isdecimal() or not job.isascii():
        raise UnknownJob(f"there is no job {job[:80]!r}")
    return Request(Watch(int(job), wait_ms), _ended)


def extend(tokens: Sequence[str], lease_ms: int) -> Request[Settled]:
    """Heartbeat; the answer also names the jobs that are to be cancelled."""
    return Request(Extend([int(token) for token in tokens], lease_ms), _settled)


def release(tokens: Sequence[str]) -> Request[Settled]:
    """Given back unused: nothing is counted or charged."""
    return Request(Release([int(token) for token in tokens]), _settled)


def failed(failure: Failure) -> Request[None]:
    """One attempt failed."""
    payload = None
    if failure.payload_base64 is not None:
        payload = b64decode(failure.payload_base64)
    elif failure.payload is not UNSET:
        payload = bytes(failure.payload)
    return verbs.nack(
        int(failure.token),
        failure.error,
        retry_in=failure.retry_in,
        is_bury=failure.bury,
        payload=payload,
        is_unused=failure.unused,
    )


def wait(
    token: str, reply_key: str, timeout_ms: int, *, is_done_on_reply: bool = False
) -> Request[Settled]:
    """The leased job gives its worker back and waits for a reply."""
    request = verbs.wait(
        int(token), reply_key, timeout_ms, is_done_on_reply=is_done_on_reply
    )
    return Request(request.ask, lambda _: Settled([]))


def reply(queue: str, reply_key: str, payload: bytes) -> Request[str]:
    """An answer from outside; tells what became of it."""
    request = verbs.reply(queue, reply_key, payload)
    return Request(request.ask, lambda fate: str(fate.value))


def _asked(verb: Callable[P, Request[T]]) -> Callable[Concatenate["LocalPort", P], T]:
    def call(self: "LocalPort", /, *args: P.args, **kwargs: P.kwargs) -> T:
        request = verb(*args, **kwargs)
        try:
            return ask(self.link, request)
        except UnknownQueue:
            for config in missing(request):
                ask(self.link, config)
            return ask(self.link, request)

    call.__doc__ = verb.__doc__
    return call


def _awaited(
    verb: Callable[P, Request[T]],
) -> Callable[Concatenate["AsyncLocalPort", P], Awaitable[T]]:
    async def call(self: "AsyncLocalPort", /, *args: P.args, **kwargs: P.kwargs) -> T:
        request = verb(*args, **kwargs)
        try:
            return await ask_async(self.link, request)
        except UnknownQueue:
            for config in missing(request):
                await ask_async(self.link, config)
            return await ask_async(self.link, request)

    call.__doc__ = verb.__doc__
    return call


class LocalPort:
    """A link to an owner, for code that blocks."""

    def __init__(self, link: Link) -> None:
        self.link = link

    enqueue = _asked(enqueue)
    reply = _asked(reply)
    result = _asked(result)
    schedule = _asked(verbs.schedule)
    configure = _asked(verbs.configure)

    def close(self) -> None:
        """The link is its maker's to close."""


class AsyncLocalPort:
    """The same for asyncio."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._is_cut_short = False
        """A lease was cancelled while it waited."""

    enqueue = _awaited(enqueue)
    reply = _awaited(reply)
    result = _awaited(result)
    schedule = _awaited(verbs.schedule)
    configure = _awaited(verbs.configure)
    _lease = _awaited(lease)
    ack = _awaited(ack)
    extend = _awaited(extend)
    release = _awaited(release)
    wait = _awaited(wait)

    async def lease(
        self,
        queues: Sequence[str],
        most: int,
        *,
        wait_ms: int = 0,
        lease_ms: int | None = None,
        worker: str = "",
    ) -> list[Leased]:
        """Up to `most` jobs; if it is cancelled, what was granted is given back."""
        try:
            return await self._lease(
                queues, most, wait_ms=wait_ms, lease_ms=lease_ms, worker=worker
            )
        except asyncio.CancelledError:
            self._is_cut_short = True
            raise

    async def nack(self, failures: Sequence[Failure]) -> Settled:
        """The attempts failed."""
        asked = [ask_async(self.link, failed(failure)) for failure in failures]
        stale: list[str] = []
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for failure, answer in zip(failures, answers, strict=True):
            if isinstance(answer, LeaseLost):
                stale.append(failure.token)
            elif isinstance(answer, BaseException):
                raise answer
        return Settled(stale)

    async def close(self) -> None:
        """The link is its maker's to close; what is to be given back is on its way."""
        if not self._is_cut_short:
            return
        with suppress(TimeoutError, RuntimeFailure):
            async with asyncio.timeout(LAST_WORDS_S):
                # Asks are answered in order: by the first the lease is withdrawn or was
                # granted, and then given back; by the second that has been heard.
                for _ in range(2):
                    await ask_async(self.link, release([]))


def missing(request: Request[T]) -> list[Request[None]]:
    """Makes the queues that a request names; those that are there stay as they are."""
    match request.ask:
        case Enqueue(queue=name):
            names = [name]
        case Lease(queues=tuple(named)):
            names = list(named)
        case PutSchedule(schedule=entry):
            names = [entry.queue]
        case _:
            names = []
    return [
        Request(Configure(QueueConfig(name=name), is_new_only=True), lambda _: None)
        for name in names
    ]


def _settled(got: CoreSettled) -> Settled:
    return Settled([str(n) for n in got.stale], [str(n) for n in got.cancelled])


def _ended(found: Ended) -> ResultShown:
    told = ResultShown(
        id=str(found.seq),
        state=found.state.value,
        problem=found.problem or None,
        ended_ms=found.ended_ms,
        kept_until_ms=found.until_ms,
        errors=_errors(found.errors),
    )
    if found.value is not None:
        told.value = Raw(found.value)
    return told


def _errors(errors: Sequence[JobError]) -> list[FailedAttempt]:
    return [FailedAttempt(e.at_ms, e.attempt, e.reason, e.text) for e in errors]


def _leased(job: LeasedJob) -> Leased:
    spec = job.spec
    leased = Leased(
        id=str(job.seq),
        token=str(job.token),
        queue=job.queue,
        kind=spec.kind,
        tenant=spec.tenant,
        attempt=job.attempt,
        attempts_max=job.attempts_max,
        lease_until_ms=job.lease_until_ms,
    )
    if spec.is_json:
        leased.payload = Raw(job.payload)
    else:
        leased.payload_base64 = b64encode(job.payload).decode()
    if job.reply is not None:
        leased.reply_base64 = b64encode(job.reply).decode()
    if job.is_continued:
        leased.is_continued = True
    if spec.headers is not None:
        leased.headers = spec.headers
    if spec.labels is not None:
        leased.labels = spec.labels
    if job.errors:
        leased.errors = _errors(job.errors)
    if spec.result_ms is not None:
        leased.wants_result = True
    return leased
