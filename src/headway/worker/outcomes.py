"""What handlers and retry logic can say, beside returning and raising."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final

import msgspec
from msgspec import UNSET

from headway.core import retry as core_retry
from headway.core.durations import format_ms, parse_ms
from headway.core.errors import LeaseLost
from headway.core.retry import GiveUp
from headway.wire.work import Leased

Duration = int | str


class Retry(msgspec.Struct, frozen=True):
    """Another attempt; what is left out is as the job's strategy says."""

    in_: Duration | None = None
    payload: Mapping[str, Any] | None = None
    """Other arguments for the next attempt, by name: all of them."""
    queue: str | None = None
    """Another queue: the job is done here, and a new one goes on there."""


class Bury(msgspec.Struct, frozen=True):
    """No further attempt: to the dead letters, with this reason."""

    reason: str = ""


Verdict = Retry | Bury | GiveUp | type[GiveUp] | None
"""None means: as the job's strategy says."""
RetryLogic = Callable[[Leased, BaseException, int], Verdict]
"""Given the job, its error and the attempt, counted from 1."""
RetryOption = core_retry.Retry | RetryLogic


class WaitFor(msgspec.Struct, frozen=True):
    """Returned by a handler: its job gives its worker back and waits for a reply."""

    key: str
    timeout_ms: int


def wait_for(key: str, timeout: Duration) -> WaitFor:
    """To be returned by a handler: the job goes on when the reply for `key` is there.

    It goes on in the handler's `on_reply`, or is done if there is none. Without a reply
    in time the attempt has failed.
    """
    return WaitFor(key, parse_ms(timeout, "timeout"))


class TimedOut(Exception):
    """The handler ran for longer than its job may."""


class ReplyTimedOut(Exception):
    """The reply that the attempt waited for did not come in time."""


def ended_unheard(job: Leased) -> BaseException | None:
    """How the attempt before ended, if no worker was at hand to see it."""
    if job.errors is UNSET or not job.errors or job.is_continued is True:
        return None
    last = job.errors[-1]
    if last.attempt != job.attempt - 1:
        return None
    match last.reason:
        case "lease lost":
            return LeaseLost(last.text or "its worker was not heard of for a lease")
        case "no reply":
            return ReplyTimedOut("no reply came in time")
        case "timed out":
            return TimedOut("timed out: the queue waited no longer")
        case _:
            return None


def too_long(timeout_s: float) -> str:
    return f"timed out: ran for longer than {format_ms(round(timeout_s * 1_000))}"


current: Final[ContextVar[Leased]] = ContextVar("headway-job")


def current_job() -> Leased:
    """The job that runs here; LookupError outside of a handler."""
    return current.get()
