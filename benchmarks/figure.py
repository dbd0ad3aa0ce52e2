"""One measured number and the bounds it must keep."""

from dataclasses import dataclass
from math import isnan
from typing import Literal

Verdict = Literal["ok", "below", "above", "shown"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure without floor and ceiling is shown, and never fails a run."""

    name: str
    value: float
    unit: str
    floor: float | None = None
    """The least value that is good enough."""
    ceiling: float | None = None
    """The greatest value that is good enough."""
    note: str = ""
    """What a reader needs to repeat it: seed, sizes, the peer it is a ratio to."""

    @property
    def verdict(self) -> Verdict:
        # Written so that a NaN is never good enough.
        if self.floor is not None and not self.value >= self.floor:
            return "below"
        if self.ceiling is not None and not self.value <= self.ceiling:
            return "above"
        return "shown" if self.floor is None and self.ceiling is None else "ok"

    @property
    def is_good(self) -> bool:
        return self.verdict in {"ok", "shown"}

    @property
    def bounds(self) -> str:
        """The bounds for a reader: `≥ 25,000`, `≤ 2`."""
        floor = "" if self.floor is None else f"≥ {shown(self.floor)}"
        ceiling = "" if self.ceiling is None else f"≤ {shown(self.ceiling)}"
        return " ".join(filter(None, (floor, ceiling)))


def shown(value: float) -> str:
    """Three digits where they matter: 0.0123, 1.46, 25,400; a dash for not measured."""
    if isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
