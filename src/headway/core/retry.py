"""Retry strategies as values, and the one function that reads them.

Nothing here draws at random: the caller brings the draw.
"""

from typing import Final

import msgspec

from headway.core import defaults
from headway.core.errors import BadValue

FACTOR_MAX: Final = 1_000.0
DELAYS_MAX: Final = 1_000
_MASK_64: Final = (1 << 64) - 1


class Fixed(msgspec.Struct, frozen=True, tag="fixed"):
    """The same delay after every failed attempt."""

    delay_ms: int

    def __post_init__(self) -> None:
        _delay("delay_ms", self.delay_ms)


class Exponential(msgspec.Struct, frozen=True, tag="exponential"):
    """Each delay is `factor` times the one before, up to `max_ms`.

    `max_ms` also caps the first delay.
    """

    first_ms: int = defaults.BACKOFF_FIRST_MS
    max_ms: int = defaults.BACKOFF_MAX_MS
    factor: float = 2.0
    jitter: float = 0.5
    """The share of a delay that a draw may take off it."""

    def __post_init__(self) -> None:
        _delay("first_ms", self.first_ms)
        _delay("max_ms", self.max_ms)
        if not 1.0 <= self.factor <= FACTOR_MAX:
            raise BadValue("factor", self.factor, f"must be from 1 to {FACTOR_MAX}")
        if not 0.0 <= self.jitter <= 1.0:
            raise BadValue("jitter", self.jitter, "must be from 0 to 1")


class Delays(msgspec.Struct, frozen=True, tag="delays"):
    """The listed delays in turn; gives up when the list ends."""

    delays_ms: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.delays_ms) > DELAYS_MAX:
            raise BadValue("delays_ms", len(self.delays_ms), f"at most {DELAYS_MAX}")
        for delay_ms in self.delays_ms:
            _delay("delays_ms", delay_ms)


class GiveUp(msgspec.Struct, frozen=True, tag="give_up"):
    """The first failure is the last."""


class WithPayload(msgspec.Struct, frozen=True, tag="with_payload"):
    """As `then` says, and the next attempt runs with another payload."""

    payload: bytes
    then: Fixed | Exponential | Delays


Retry = Fixed | Exponential | Delays | GiveUp | WithPayload


class RetryAfter(msgspec.Struct, frozen=True):
    """Try again after `delay_ms`; a payload of None means: the same one."""

    delay_ms: int
    payload: bytes | None = None


class Stop(msgspec.Struct, frozen=True):
    """No further attempt."""


def decide(retry: Retry, attempt: int, draw: float) -> RetryAfter | Stop:
    """What follows the failure of `attempt` (counted from 1); `draw` is in [0, 1)."""
    match retry:
        case Fixed(delay_ms):
            return RetryAfter(delay_ms)
        case Exponential():
            return RetryAfter(_backoff_ms(retry, attempt, draw))
        case Delays(delays_ms):
            if attempt > len(delays_ms):
                return Stop()
            return RetryAfter(delays_ms[attempt - 1])
        case GiveUp():
            return Stop()
        case WithPayload(payload, then):
            outcome = decide(then, attempt, draw)
            if isinstance(outcome, Stop):
                return outcome
            return RetryAfter(outcome.delay_ms, payload)


def draw(seq: int, attempt: int) -> float:
    """A number in [0, 1) that is always the same for a job's attempt.

    Neighbouring jobs and attempts get unrelated numbers (splitmix64's mixing), so
    jitter spreads without any randomness in the core.
    """
    mixed = _mix(_mix(seq) + attempt)
    return (mixed >> 11) / (1 << 53)


def _backoff_ms(retry: Exponential, attempt: int, draw: float) -> int:
    if retry.first_ms == 0:
        return 0
    try:
        grown_ms = retry.first_ms * retry.factor ** (attempt - 1)
    except OverflowError:
        grown_ms = float(retry.max_ms)
    full_ms = int(min(grown_ms, retry.max_ms))
    return full_ms - int(full_ms * retry.jitter * draw)


def _mix(value: int) -> int:
    value = (value + 0x9E3779B97F4A7C15) & _MASK_64
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK_64
    return value ^ (value >> 31)


def _delay(key: str, value: int) -> None:
    if not 0 <= value <= defaults.DURATION_MAX_MS:
        raise BadValue(key, value, f"must be from 0 to {defaults.DURATION_MAX_MS} ms")
