"""The one table of transitions: code, tests and the diagram in the docs follow it.

Two rules: a job is in exactly one state, and only the verbs below move it.
"""

from enum import StrEnum
from typing import Final, NamedTuple


class JobState(StrEnum):
    """Where a job stands in its life."""

    SCHEDULED = "scheduled"
    READY = "ready"
    LEASED = "leased"
    WAITING = "waiting"
    DONE = "done"
    CANCELLED = "cancelled"
    DEAD = "dead"


# In CPython 3.11 a look-up of an enum's member costs ten times that of a constant.
SCHEDULED: Final = JobState.SCHEDULED
READY: Final = JobState.READY
LEASED: Final = JobState.LEASED
WAITING: Final = JobState.WAITING
DONE: Final = JobState.DONE
CANCELLED: Final = JobState.CANCELLED
DEAD: Final = JobState.DEAD

LIVE: Final = (
    JobState.SCHEDULED,
    JobState.READY,
    JobState.LEASED,
    JobState.WAITING,
)
"""States from which a job can still run, and in which it is counted as open."""


class Transition(NamedTuple):
    """One arrow of the diagram; `source` is None for a job that did not exist."""

    verb: str
    source: JobState | None
    target: JobState


_S = JobState

TRANSITIONS: Final = (
    Transition("enqueue", None, _S.SCHEDULED),
    Transition("enqueue", None, _S.READY),
    Transition("promote", _S.SCHEDULED, _S.READY),
    Transition("reschedule", _S.READY, _S.SCHEDULED),
    Transition("lease", _S.READY, _S.LEASED),
    Transition("ack", _S.LEASED, _S.DONE),
    Transition("retry", _S.LEASED, _S.SCHEDULED),
    Transition("retry", _S.WAITING, _S.SCHEDULED),
    Transition("release", _S.LEASED, _S.READY),
    Transition("lose", _S.LEASED, _S.READY),
    Transition("wait", _S.LEASED, _S.WAITING),
    Transition("reply", _S.WAITING, _S.READY),
    Transition("reply", _S.WAITING, _S.DONE),
    *(Transition("cancel", state, _S.CANCELLED) for state in LIVE),
    *(Transition("expire", state, _S.DEAD) for state in LIVE),
    *(Transition("bury", state, _S.DEAD) for state in LIVE),
    Transition("redrive", _S.DEAD, _S.READY),
    Transition("discard", _S.DEAD, _S.CANCELLED),
)

_ALLOWED: Final = frozenset(TRANSITIONS)


def is_allowed(verb: str, source: JobState | None, target: JobState) -> bool:
    """Whether the table holds this arrow."""
    return Transition(verb, source, target) in _ALLOWED
