"""Bulk operations: one thing that is done to many jobs, and how far it is.

The record is durable, and jobs are dealt with page by page (`sweeps`), so that millions
of them stop nobody else and a restart loses and repeats nothing.
"""

from enum import StrEnum
from math import ceil
from typing import Final

import msgspec

from headway.core import defaults
from headway.core.errors import BadValue
from headway.core.job import Job

PAGE_JOBS: Final = 500
"""Jobs that one page changes at most."""
PAGES_A_SECOND: Final = 10
"""At a rate, pages are so small that about as many come in a second."""
SEQS_MAX: Final = 1_000
TEXT_LENGTH_MAX: Final = 1_000
RUNNING_MAX: Final = 100
ENDED_KEPT: Final = 100
RATE_MIN: Final = 0.001
RATE_MAX: Final = 1_000_000.0
SEQ_MAX: Final = 2**63 - 1


class BulkVerb(StrEnum):
    """What is done to each of the jobs."""

    PURGE = "purge"
    """What has not started is cancelled, of a queue or of one tenant."""
    REDRIVE = "redrive"
    """Dead letters go back, with fresh attempts."""
    DISCARD = "discard"
    """Dead letters are deleted for good; their history stays."""


class BulkState(StrEnum):
    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"


class Filter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which jobs are meant: those of which all that is said here holds.

    All but the tenant is said of dead letters only.
    """

    tenant: str | None = None
    kind: str | None = None
    reason: str | None = None
    """Of their last error."""
    text: str | None = None
    """Contained in the text of their last error."""
    died_after_ms: int | None = None
    """At this moment or later."""
    died_before_ms: int | None = None
    seqs: tuple[int, ...] | None = None


EVERYTHING: Final = Filter()


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """Up to where the jobs have been dealt with; only who reads them knows more."""

    lane: int
    turn: bytes
    first: int
    second: int
    seq: int
    has_met: bool = False
    """Something was met between the beginning and here."""


class Bulk(msgspec.Struct, eq=False):
    """A bulk operation as it stands."""

    id: int
    queue: str
    verb: BulkVerb
    filter: Filter
    rate_per_s: float | None
    started_ms: int
    last_seq: int
    """Jobs that came after this one are not meant."""
    matched_total: int | None
    state: BulkState = BulkState.RUNNING
    done: int = 0
    failed: int = 0
    ended_ms: int | None = None
    cursor: Cursor | None = None
    """None at the beginning."""
    paid_ms: float = 0.0
    """When all that was done will have been paid for, by its rate."""

    def next_ms(self) -> int:
        """When its next page may be dealt with."""
        if self.verb is BulkVerb.PURGE:
            return max(ceil(self.paid_ms), self.started_ms)
        # A redriven job that dies again has then died after the start, and is not meant.
        return max(ceil(self.paid_ms), self.started_ms + 1)

    def page_jobs(self) -> int:
        """How many jobs its next page may change."""
        if self.rate_per_s is None:
            return PAGE_JOBS
        return max(1, min(PAGE_JOBS, int(self.rate_per_s / PAGES_A_SECOND)))


class BulkView(msgspec.Struct, frozen=True):
    """A bulk operation as others see it."""

    id: int
    queue: str
    verb: BulkVerb
    filter: Filter
    rate_per_s: float | None
    state: BulkState
    done: int
    failed: int
    """Jobs that were meant and had moved on, or were not there."""
    matched_total: int | None
    """How many were meant when it started, where that is known without a look."""
    started_ms: int
    ended_ms: int | None


def view_of(bulk: Bulk) -> BulkView:
    return BulkView(
        bulk.id,
        bulk.queue,
        bulk.verb,
        bulk.filter,
        bulk.rate_per_s,
        bulk.state,
        bulk.done,
        bulk.failed,
        bulk.matched_total,
        bulk.started_ms,
        bulk.ended_ms,
    )


def matches(which: Filter, job: Job) -> bool:
    """Whether a dead letter is meant; its seq and its time of death are not looked at."""
    spec = job.spec
    if which.tenant is not None and spec.tenant != which.tenant:
        return False
    if which.kind is not None and spec.kind != which.kind:
        return False
    if which.reason is None and which.text is None:
        return True
    if not job.errors:
        return False
    last = job.errors[-1]
    if which.reason is not None and last.reason != which.reason:
        return False
    return which.text is None or which.text in last.text


def check_filter(which: Filter) -> None:
    """Refuses what can't be meant, naming the key."""
    longest = defaults.NAME_LENGTH_MAX
    for key, text, most in (
        ("tenant", which.tenant, longest),
        ("kind", which.kind, longest),
        ("reason", which.reason, longest),
        ("text", which.text, TEXT_LENGTH_MAX),
    ):
        if text is not None and len(text) > most:
            raise BadValue(f"filter.{key}", text, f"at most {most} characters")
    for key, at_ms in (
        ("died_after_ms", which.died_after_ms),
        ("died_before_ms", which.died_before_ms),
    ):
        if at_ms is not None and not 0 <= at_ms <= defaults.TIME_MAX_MS:
            rule = f"must be from 0 to {defaults.TIME_MAX_MS}"
            raise BadValue(f"filter.{key}", at_ms, rule)
    seqs = which.seqs
    if seqs is None:
        return
    if not 1 <= len(seqs) <= SEQS_MAX:
        raise BadValue("filter.seqs", len(seqs), f"must be 1 to {SEQS_MAX} of them")
    for seq in seqs:
        if not 1 <= seq <= SEQ_MAX:
            raise BadValue("filter.seqs", seq, "is not the number of a job")


def check_bulk(verb: BulkVerb, which: Filter, rate_per_s: float | None) -> None:
    """Refuses what can't be done."""
    check_filter(which)
    if verb is BulkVerb.PURGE and which != Filter(tenant=which.tenant):
        raise BadValue("filter", which, "a purge is of a queue or of one tenant")
    if rate_per_s is not None and not RATE_MIN <= rate_per_s <= RATE_MAX:
        rule = f"must be from {RATE_MIN} to {RATE_MAX}"
        raise BadValue("rate_per_s", rate_per_s, rule)
