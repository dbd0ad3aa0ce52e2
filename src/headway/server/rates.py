"""How many requests a token may make: one number each, however many there are."""

import re
from typing import Final, Self

import msgspec

from headway.core.errors import BadValue

RATE: Final = r"^[1-9][0-9]{0,8}/[smh]$"
_RATE: Final = re.compile(RATE)
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3_600}


class RequestRate(msgspec.Struct, frozen=True):
    """So many requests in a unit of time; as many as come in a second may come at once."""

    count: int
    unit: str = "s"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads "500/s", "30/m" or "10/h"."""
        if not _RATE.fullmatch(text):
            rule = 'must be a number of requests such as "500/s", "30/m" or "10/h"'
            raise BadValue("rate", text, rule)
        count, _, unit = text.partition("/")
        return cls(int(count), unit)

    def __str__(self) -> str:
        return f"{self.count}/{self.unit}"

    @property
    def each_s(self) -> float:
        """How long it takes until one more may come."""
        return _UNITS_S[self.unit] / self.count


class Allowance:
    """A bucket that fills at a rate, kept as the time at which it will be full."""

    __slots__ = ("_each_s", "_full_s", "_slack_s", "rate")

    def __init__(self, rate: RequestRate) -> None:
        self.rate = rate
        self._each_s = rate.each_s
        # A bucket holds what comes in a second, and one at least.
        self._slack_s = max(0.0, 1.0 - self._each_s)
        self._full_s = 0.0

    def take(self, now_s: float) -> float:
        """0 if one more may come; else nothing is taken, and it is how long to wait."""
        full_s = max(self._full_s, now_s)
        wait_s = full_s - now_s - self._slack_s
        if wait_s > 0:
            return wait_s
        self._full_s = full_s + self._each_s
        return 0.0
