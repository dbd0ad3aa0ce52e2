"""In how many partitions a queue should be, where that is left to the nodes.

A partition has one owner, which commits one batch after another. How much of its time
that takes says how near it is to its limit. A backlog says nothing of it: where workers
are too few, more owners would not help.
"""

from typing import Final

import msgspec

HIGH: Final = 0.6
"""One partition more is added where owners are busy for so much of their time..."""
HIGH_LOOKS: Final = 3
"""...at so many looks one after another."""
LOW: Final = 0.2
"""One is taken away where the others would be busy for no more than this..."""
LOW_LOOKS: Final = 30
"""...at so many looks."""


class Trend(msgspec.Struct, frozen=True):
    """How many looks, up to the last one, have said the same."""

    high: int = 0
    low: int = 0


def next_width(width: int, most: int, busy: float, trend: Trend) -> tuple[int, Trend]:
    """So many partitions should take new jobs now, one more or less at a time.

    `busy` is the mean share of their time for which the owners of the queue's
    partitions were committing. After a change it is looked for as long again. The two
    bounds are so far apart that a change never calls for its opposite.
    """
    if width > max(1, most):
        return width - 1, Trend()
    if width < most and busy >= HIGH:
        if trend.high + 1 >= HIGH_LOOKS:
            return width + 1, Trend()
        return width, Trend(high=trend.high + 1)
    if width > 1 and busy * width / (width - 1) <= LOW:
        if trend.low + 1 >= LOW_LOOKS:
            return width - 1, Trend()
        return width, Trend(low=trend.low + 1)
    return width, Trend()
