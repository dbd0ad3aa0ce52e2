"""How a simulated run can end, and what is told about it."""

from collections import Counter
from typing import Final

import msgspec

OK: Final = 0
CRASH: Final = 1
LIVENESS: Final = 2
CORRECTNESS: Final = 3

NAMES: Final = {OK: "ok", CRASH: "crash", LIVENESS: "liveness", CORRECTNESS: "broken"}


class Violation(Exception):
    """A promise was broken; the text names the invariant."""


class Stalled(Exception):
    """Invariant 29: faults have stopped, and the work does not come to an end."""


class Result(msgspec.Struct):
    """One seed's run."""

    seed: int
    code: int
    digest: str
    """The same seed gives the same (invariant 30)."""
    text: str = ""
    """What went wrong."""
    counts: Counter[str] = msgspec.field(default_factory=Counter)
    """Faults, operations and what came of them."""
    trace: list[str] = []
    """The last events before the end."""


def expect(is_so: bool, promise: str, *details: object) -> None:
    """Raises a violation unless it is so."""
    if not is_so:
        shown = ", ".join(map(str, details))
        raise Violation(f"{promise}: {shown}" if shown else promise)
