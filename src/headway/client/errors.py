"""Errors of the client.

ClientFailure
└── Unreachable   no answer: what came of the call is not known, or nothing did
    └── Elsewhere     this server has none; another one of the list may have

RuleBroken (of the core)
└── Refused       the server says no; `code` says why, and never changes its meaning

Codes that are rules of the core (queue_full, lease_lost, …) come as the core's own
errors, so that a server and an embedded queue are told apart by nobody.
"""

from typing import Final

from headway.core import errors as core
from headway.core.errors import RuleBroken
from headway.wire.problems import Problem


class ClientFailure(Exception):
    """Something that is nobody's rule."""


class Unreachable(ClientFailure):
    """No answer from the server, for all the tries that were safe."""


class Elsewhere(Unreachable):
    """This server has no answer; another one of the list may have."""


class Refused(RuleBroken):
    """The server says no."""

    def __init__(self, code: str, status: int, detail: str = "", key: str = "") -> None:
        self.code = code
        self.status = status
        self.detail = detail
        self.key = key
        super().__init__(": ".join(filter(None, [code, key, detail])))


_CORE: Final = {
    error.code: error
    for error in (
        core.UnknownQueue,
        core.UnknownJob,
        core.LeaseLost,
        core.QueueFull,
        core.IdempotencyConflict,
        core.TooManySlos,
        core.TooManyQueues,
        core.NoShare,
        core.RepliesFull,
        core.NoResult,
        core.WrongState,
    )
}


def error_of(problem: Problem) -> RuleBroken:
    """The exception that stands for a problem."""
    known = _CORE.get(problem.code)
    if known is not None:
        return known(problem.detail or problem.title)
    detail = problem.detail or problem.title
    return Refused(problem.code, problem.status, detail, problem.key)
