"""History played again: where every job must stand by what is said to have happened."""

from collections.abc import Iterator
from typing import Final

from headway.core import events
from headway.core.events import AnyEvent, Event
from headway.core.states import JobState, is_allowed

SEQS_MAX: Final = 1 << 27
"""Jobs that are followed, a byte each: those of the newest numbers that fit."""

_STATES: Final = (None, *JobState)
_CODES: Final = {state: code for code, state in enumerate(_STATES)}
_GONE: Final = (None, JobState.DONE, JobState.CANCELLED)
TARGETS: Final[dict[type[Event], JobState]] = {
    events.Promoted: JobState.READY,
    events.Rescheduled: JobState.SCHEDULED,
    events.Leased: JobState.LEASED,
    events.Acked: JobState.DONE,
    events.Retried: JobState.SCHEDULED,
    events.Released: JobState.READY,
    events.Lost: JobState.READY,
    events.Waited: JobState.WAITING,
    events.Cancelled: JobState.CANCELLED,
    events.Expired: JobState.DEAD,
    events.Buried: JobState.DEAD,
    events.Redriven: JobState.READY,
    events.Discarded: JobState.CANCELLED,
}
"""Where an event leaves its job, if that is always the same."""
_STAYING: Final = (events.Extended, events.CancelRequested)
"""They say something of a leased job, which stays leased."""


class Replay:
    """Follows the jobs whose whole history is there: those it sees enqueued."""

    def __init__(self) -> None:
        self._first = 0
        """The seq of the first job that it follows."""
        self._states = bytearray()

    def play(self, event: AnyEvent) -> str | None:
        """What is wrong with the event, if anything."""
        if not isinstance(event, Event):
            return None
        if isinstance(event, events.Enqueued):
            return self._enqueue(event)
        place = event.seq - self._first
        if not self._first or not 0 <= place < len(self._states):
            return None
        state = _STATES[self._states[place]]
        if state is None:
            return None
        verb = str(event.__struct_config__.tag)
        if isinstance(event, _STAYING):
            is_right, target = state is JobState.LEASED, state
        else:
            target = target_of(event)
            is_right = is_allowed(verb, state, target)
        self._states[place] = _CODES[target]
        return None if is_right else f"job {event.seq}: {verb} of a {state} job"

    def meet(self, seq: int, state: JobState) -> str | None:
        """What is wrong with a job that is there, if anything; each is met once."""
        place = seq - self._first
        if not self._first or place < 0:
            return None
        code = self._states[place] if place < len(self._states) else 0
        expected = _STATES[code]
        if expected is state:
            self._states[place] = 0
            return None
        if expected is None:
            return f"job {seq} is {state}; history does not know it"
        self._states[place] = 0
        return f"job {seq} is {state}; by its history it is {expected}"

    def left(self, seq: int, state: JobState) -> str | None:
        """What is wrong with what a job has left, if anything."""
        place = seq - self._first
        if not self._first or not 0 <= place < len(self._states):
            return None
        expected = _STATES[self._states[place]]
        if expected is None or expected is state:
            return None
        return f"result {seq} is of a job that is {state}; by history it is {expected}"

    def missed(self) -> Iterator[str]:
        """Jobs that should be there, but nobody has met."""
        for code, state in enumerate(_STATES):
            if state in _GONE:
                continue
            place = self._states.find(code)
            while place >= 0:
                yield f"job {self._first + place} is {state} by its history, but gone"
                place = self._states.find(code, place + 1)

    def _enqueue(self, event: events.Enqueued) -> str | None:
        if not self._first:
            self._first = event.seq
        place = event.seq - self._first
        if place < len(self._states):
            return f"job {event.seq} was enqueued twice, or out of order"
        self._states.extend(bytes(place - len(self._states)))
        self._states.append(_CODES[target_of(event)])
        if len(self._states) > SEQS_MAX:
            dropped = len(self._states) // 2
            del self._states[:dropped]
            self._first += dropped
        return None


def target_of(event: Event) -> JobState:
    """Where an event leaves its job; it must be one that moves it."""
    if isinstance(event, events.Enqueued):
        is_ready = event.run_at_ms <= event.at_ms
        return JobState.READY if is_ready else JobState.SCHEDULED
    if isinstance(event, events.Replied):
        return JobState.DONE if event.is_done else JobState.READY
    return TARGETS[type(event)]
