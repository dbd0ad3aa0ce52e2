"""What workers ask, and are told."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from headway.core.results import NOTHING, Result
from headway.wire.jobs import FailedAttempt
from headway.wire.values import (
    BATCH_MAX,
    Base64,
    Duration,
    ErrorText,
    Key,
    Name,
    QueueName,
    Span,
    Token,
)

QUEUES_MAX = 64
Problem = Annotated[str, Meta(max_length=1_024)]
Tokens = Annotated[list[Token], Meta(min_length=1, max_length=BATCH_MAX)]


class LeaseBody(msgspec.Struct, forbid_unknown_fields=True):
    """Asks for jobs: at most as many as can be started now."""

    queues: (
        Annotated[list[QueueName], Meta(min_length=1, max_length=QUEUES_MAX)] | None
    ) = None
    """Left out: all queues."""
    max: Annotated[int, Meta(ge=1, le=BATCH_MAX)] = 1
    wait: Duration = 0
    """How long an empty answer is held back, at most a minute."""
    lease: Span | None = None
    """How long the jobs are the caller's; as their queue says if left out."""
    worker: Name = ""


class Leased(msgspec.Struct, kw_only=True):
    """A job in the hands of its worker."""

    id: str
    token: str
    """Proof of the lease: ack, nack, extend, release and wait ask for it."""
    queue: str
    kind: str
    tenant: str
    attempt: int
    attempts_max: int
    lease_until_ms: int
    payload: Raw | UnsetType = UNSET
    payload_base64: str | UnsetType = UNSET
    reply: Raw | UnsetType = UNSET
    """The answer that it waited for, if it goes on after a wait."""
    reply_base64: str | UnsetType = UNSET
    is_continued: bool | UnsetType = UNSET
    """It goes on with an attempt under way: the reply has just come."""
    headers: dict[str, str] | UnsetType = UNSET
    labels: dict[str, str] | UnsetType = UNSET
    errors: list[FailedAttempt] | UnsetType = UNSET
    wants_result: bool | UnsetType = UNSET
    """Somebody asks for what its handler returns: it is to come with the ack."""


class LeasedJobs(msgspec.Struct):
    jobs: list[Leased]


class TokensBody(msgspec.Struct, forbid_unknown_fields=True):
    tokens: Tokens


class ResultBody(msgspec.Struct, forbid_unknown_fields=True):
    """What a handler returned, or why that can't be told."""

    value: Raw | UnsetType = UNSET
    """Any JSON value; of more than 256 KiB only that it was is kept."""
    problem: Problem | UnsetType = UNSET

    def told(self) -> Result:
        """As the core has it."""
        if self.problem is not UNSET:
            return Result(None, self.problem)
        return NOTHING if self.value is UNSET else Result(bytes(self.value))


class AckBody(msgspec.Struct, forbid_unknown_fields=True):
    tokens: Tokens
    results: (
        Annotated[dict[Token, ResultBody], Meta(max_length=BATCH_MAX)] | UnsetType
    ) = UNSET
    """By token, of jobs that want theirs told; of others they are dropped."""


class ExtendBody(msgspec.Struct, forbid_unknown_fields=True):
    tokens: Tokens
    lease: Span = "30s"


class Settled(msgspec.Struct):
    """What was stale changed nothing; what is cancelled should be given up."""

    stale: list[str]
    cancelled: list[str] = []


class Failure(msgspec.Struct, forbid_unknown_fields=True):
    """One attempt that failed."""

    token: Token
    error: ErrorText = ""
    retry_in: Duration | None = None
    """In place of what the job's retry strategy says."""
    bury: bool = False
    """No further attempt: to the dead letters."""
    payload: Raw | UnsetType = UNSET
    """Another payload for the next attempt."""
    payload_base64: Base64 | None = None
    unused: bool = False
    """Put off before it began, until `retry_in` has passed: it does not count."""


class NackBody(msgspec.Struct, forbid_unknown_fields=True):
    jobs: Annotated[list[Failure], Meta(min_length=1, max_length=BATCH_MAX)]


class WaitBody(msgspec.Struct, forbid_unknown_fields=True):
    """The leased job gives its worker back and waits for a reply."""

    token: Token
    reply_key: Key
    timeout: Span
    done_on_reply: bool = False
    """The reply completes the job; else it goes on with it."""


class ReplyBody(msgspec.Struct, forbid_unknown_fields=True):
    payload: Raw | UnsetType = UNSET
    payload_base64: Base64 | None = None


class ReplyFate(msgspec.Struct):
    fate: str
    """resolved, early (kept), repeated or late."""
