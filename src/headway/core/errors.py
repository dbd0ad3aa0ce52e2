"""The core's errors: each names the rule that a command broke.

RuleBroken
├── BadValue              a value outside its range, with its key
├── UnknownQueue
├── UnknownJob
├── UnknownBulk
├── UnknownWrite
├── LeaseLost             a token that is not, or no longer, the job's lease
├── QueueFull             max_length reached
├── IdempotencyConflict   same key, another body
├── TooManySlos           a 17th SLO class, and no stricter one to round to
├── TooManyQueues
├── TooManyWrites         as many writes are being taken in already as may
├── TooManyBulks          as many bulk operations run already as may
├── NoShare               a label value without a share of a share limit
├── RepliesFull           too many early replies kept already
├── NoResult              none was asked for, or it is kept no more
├── HistoryDropped        events that are asked for are not kept any more
├── LookFailed            figures that can't be told, for a reason that is a bug
└── WrongState            the verb does not apply to the job's state
"""


class RuleBroken(Exception):
    """A command that the core refuses; nothing was changed by it."""

    code = "rule_broken"


class BadValue(RuleBroken):
    """A value outside its range. `key` and `value` say which."""

    code = "bad_value"

    def __init__(self, key: str, value: object, rule: str) -> None:
        self.key = key
        self.value = value
        self.rule = rule
        super().__init__(f"{key} = {_short(value)}: {rule}")


class UnknownQueue(RuleBroken):
    code = "unknown_queue"


class UnknownJob(RuleBroken):
    code = "unknown_job"


class UnknownBulk(RuleBroken):
    code = "unknown_bulk"


class UnknownWrite(RuleBroken):
    code = "unknown_write"


class LeaseLost(RuleBroken):
    code = "lease_lost"


class QueueFull(RuleBroken):
    code = "queue_full"
    may_wait = False
    """Whoever brings the jobs is to be held back for a while: there may be room soon."""
    may_shed = False
    """The queue would shed jobs, but whoever brings these wants them refused."""


class IdempotencyConflict(RuleBroken):
    code = "idempotency_conflict"


class TooManySlos(RuleBroken):
    code = "too_many_slos"


class TooManyQueues(RuleBroken):
    code = "too_many_queues"


class TooManyBulks(RuleBroken):
    code = "too_many_bulks"


class TooManyWrites(RuleBroken):
    code = "too_many_writes"


class NoShare(RuleBroken):
    code = "no_share"


class RepliesFull(RuleBroken):
    code = "replies_full"


class NoResult(RuleBroken):
    code = "not_found"


class HistoryDropped(RuleBroken):
    code = "history_dropped"


class LookFailed(RuleBroken):
    code = "internal"


class WrongState(RuleBroken):
    code = "wrong_state"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
