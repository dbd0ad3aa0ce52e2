"""What each event makes of a job.

Events are plain tuples here, as history has them: the tag, and then the fields.
Compiled code reads those many times as fast as the fields of records.
"""

from typing import Any, Final

from headway.core import events
from headway.core.events import Event
from headway.core.states import JobState
from headway.runtime.replay import TARGETS
from headway.search.lives import AT_MS, GENERATION, SEQ, Life, Told
from headway.search.rows import NEW_GROUP, cut, encode
from headway.search.schema import CODES

# Places of fields beyond those that all events of jobs have; new ones go to the end.
MORE: Final = 8
ATTEMPT: Final = 8
RUN_AT_MS: Final = 8
PRIORITY: Final = 9
COST: Final = 10
LABELS: Final = 11
WORKER: Final = 10
LEASE_UNTIL_MS: Final = 13
FAILURE: Final = 10
"""The reason of a retry, before its text and when it may run again."""
DEATH: Final = 9
REPLY_KEY: Final = 10
IS_DONE: Final = 10

_OTHER: Final = -1
"""It is of no job."""
_ENQUEUED: Final = 0
_LEASED: Final = 1
_ACKED: Final = 2
_EXTENDED: Final = 3
_RETRIED: Final = 4
_RELEASED: Final = 5
_LOST: Final = 6
_WAITED: Final = 7
_REPLIED: Final = 8
_RESCHEDULED: Final = 9
_CANCEL_REQUESTED: Final = 10
_EXPIRED: Final = 11
_BURIED: Final = 12
_REDRIVEN: Final = 13
_DISCARDED: Final = 14
_PROMOTED: Final = 15
_CANCELLED: Final = 16
_KINDS: Final[dict[type[Any], int]] = {
    events.Enqueued: _ENQUEUED,
    events.Leased: _LEASED,
    events.Acked: _ACKED,
    events.Extended: _EXTENDED,
    events.Retried: _RETRIED,
    events.Released: _RELEASED,
    events.Lost: _LOST,
    events.Waited: _WAITED,
    events.Replied: _REPLIED,
    events.Rescheduled: _RESCHEDULED,
    events.CancelRequested: _CANCEL_REQUESTED,
    events.Expired: _EXPIRED,
    events.Buried: _BURIED,
    events.Redriven: _REDRIVEN,
    events.Discarded: _DISCARDED,
    events.Promoted: _PROMOTED,
    events.Cancelled: _CANCELLED,
    events.ReplyKept: _OTHER,
    events.RuleChanged: _OTHER,
    events.Ticked: _OTHER,
    events.LimitUsed: _OTHER,
}
_TAGS: Final[dict[str, int]] = {
    str(kind.__struct_config__.tag): number for kind, number in _KINDS.items()
}
_STAYS: Final = -1
_TARGETS: Final[list[int]] = [
    CODES[TARGETS[kind]] if kind in TARGETS else _STAYS
    for kind in _KINDS
    if issubclass(kind, Event)
]
"""By the numbers above: the state in which an event leaves its job."""
_READY: Final = CODES[JobState.READY]
_SCHEDULED: Final = CODES[JobState.SCHEDULED]
_DONE: Final = CODES[JobState.DONE]
_DEAD: Final = CODES[JobState.DEAD]
_GONE: Final = CODES[JobState.CANCELLED]


class Lives:
    """The jobs of a batch, by seq, and the events that can't be played yet."""

    def __init__(self) -> None:
        self.by_seq: dict[int, Life] = {}
        self.done: list[Life] = []
        """Begun and done: nothing more happens to them, whoever wants to take them."""
        self.last_seq = 0
        """The newest that was not there before."""
        self._waiting: list[tuple[int, int, Told, Any]] = []
        """Kind, number and twice the event: its job has to be looked up, which is done
        for all of them at once."""

    def play(self, first: int, told: list[Told], raws: list[Any]) -> None:
        """Events that follow one another, the first with this number."""
        by_seq = self.by_seq
        for place, event in enumerate(told):
            kind = _TAGS[event[0]]
            if kind == _OTHER:
                continue
            seq = event[SEQ]
            life = by_seq.get(seq)
            if life is None:
                if kind != _ENQUEUED:
                    waiting = (kind, first + place, event, raws[place])
                    self._waiting.append(waiting)
                    continue
                life = self._new(event)
            move(life, kind, event, first + place, raws[place])
            if kind == _ACKED and life.before is None:
                del by_seq[seq]
                self.done.append(life)

    def wanted(self) -> list[int]:
        """Jobs to be looked up, in order."""
        seqs = {event[SEQ] for _, _, event, _ in self._waiting}
        return sorted(seqs - self.by_seq.keys())

    def play_rest(self) -> None:
        """Jobs that are not there now began before what the index knows."""
        for kind, number, event, raw in self._waiting:
            life = self.by_seq.get(event[SEQ])
            if life is None:
                life = self._new(event)
            move(life, kind, event, number, raw)
        self._waiting = []

    def take_done(self) -> list[Life]:
        done, self.done = self.done, []
        by_seq: dict[int, Life] = {life.seq: life for life in done}
        return [by_seq[seq] for seq in sorted(by_seq)]

    def in_order(self) -> list[Life]:
        by_seq = self.by_seq
        return [by_seq[seq] for seq in sorted(by_seq)]

    def _new(self, event: Told) -> Life:
        life = Life(event)
        seq: int = event[SEQ]
        self.by_seq[seq] = life
        if seq > self.last_seq:
            self.last_seq = seq
        return life


def move(life: Life, kind: int, event: Told, number: int, raw: Any) -> None:
    """The event happens to the job, and is told of it."""
    if kind == _EXTENDED:
        # A long job has thousands of heartbeats: they are not told, and no change, or
        # every one would move the job.
        life.lease_until_ms = event[MORE]
        if life.changed:
            return
    else:
        life.told.append((number, raw))
    life.changed = number
    life.changed_ms = event[AT_MS]
    life.generation = event[GENERATION]
    if kind == _ENQUEUED:
        _begin(life, event)
        return
    target = _TARGETS[kind]
    if target != _STAYS:
        life.state = target
        life.reply_key = ""
        life.lease_until_ms = 0
        is_end = target in (_DONE, _DEAD, _GONE)
        life.ended_ms = event[AT_MS] if is_end else 0
    if kind == _LEASED:
        life.attempt = event[ATTEMPT]
        life.worker = event[WORKER]
        life.lease_until_ms = event[LEASE_UNTIL_MS]
    elif kind in (_ACKED, _LOST):
        life.attempt = event[ATTEMPT]
    else:
        _move_on(life, kind, event)


def _begin(life: Life, event: Told) -> None:
    life.enqueued_ms = at_ms = event[AT_MS]
    life.run_at_ms = run_at_ms = event[RUN_AT_MS]
    life.state = _READY if run_at_ms <= at_ms else _SCHEDULED
    life.priority = event[PRIORITY]
    life.cost = event[COST]
    labels = event[LABELS] if len(event) > LABELS else None
    if labels:
        life.labels = encode(labels)


def _move_on(life: Life, kind: int, event: Told) -> None:
    """What is seldom, or says more."""
    if kind == _RETRIED:
        life.attempt = event[ATTEMPT]
        life.reason, text, life.run_at_ms = event[FAILURE : FAILURE + 3]
        life.error = cut(text)
    elif kind == _RELEASED:
        # Uncounted: the event still tells which attempt it would have been.
        life.attempt = event[ATTEMPT] - 1
    elif kind == _WAITED:
        life.attempt = event[ATTEMPT]
        life.reply_key = event[REPLY_KEY]
    elif kind == _REPLIED:
        life.reply_key = ""
        life.state = _DONE if event[IS_DONE] else _READY
        if event[IS_DONE]:
            life.ended_ms = event[AT_MS]
        else:
            life.run_at_ms = event[AT_MS]
    elif kind == _RESCHEDULED:
        life.run_at_ms = event[RUN_AT_MS]
    elif kind == _CANCEL_REQUESTED:
        life.is_cancel_requested = 1
    elif kind == _EXPIRED:
        life.reason, life.error = "expired", ""
        life.group_id = NEW_GROUP
    elif kind == _BURIED:
        life.attempt = event[ATTEMPT]
        life.reason, text = event[DEATH : DEATH + 2]
        life.error = cut(text)
        life.group_id = NEW_GROUP
    elif kind == _REDRIVEN:
        life.attempt = 0
        life.run_at_ms = event[AT_MS]
        life.is_cancel_requested = 0
        life.group_id = 0
    elif kind == _DISCARDED:
        life.group_id = 0
