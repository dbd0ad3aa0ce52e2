"""What a seed draws for itself: how often which fault strikes, and who behaves how."""

from enum import StrEnum
from random import Random
from typing import Final

import msgspec

from headway.core.bounds import Bounds


class Kind(StrEnum):
    """Faults that strike the owner, its store or its clock."""

    CRASH = "crash"
    """Between two steps."""
    POWER_CUT = "power cut"
    """Between two steps; what was not flushed is gone."""
    STOP = "stop in commit"
    """Before it, in the middle of it, or after it and before the answers."""
    CUT = "power cut in commit"
    WRITE = "write error"
    SYNC = "sync error"
    FULL = "disk full"
    MUTE = "answers lost after commit"
    CLOCK = "clock step"
    PAUSE = "owner paused"
    """Another takes over, and then the first one wakes."""
    APART = "network cut"
    SLOW = "slow disk"
    CLOSE = "clean restart"


KINDS: Final = tuple(Kind)


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """Shares are from 0 to 1; a gap of 0 means never."""

    is_on_disk: bool
    """On the simulated disk, else in memory."""
    bounds: Bounds
    """How much of the partition memory may hold; tiny ones make it read on and on."""
    is_calm: bool
    """No faults at all, and workers that keep their leases."""
    fault_gap_ms: int
    kinds: tuple[Kind, ...]
    """What may strike; one that is named twice strikes twice as often."""
    lost: float
    doubled: float
    delay_ms: int
    """The longest way of a message; by it messages overtake each other."""
    commit_ms: int
    is_patient: bool
    """Producers retry until they know; else they give up early."""
    dies: float
    """Share of the deliveries at which the worker dies without a word."""
    slow: float
    fails: float
    releases: float
    waits: float
    extends: float
    operator_gap_ms: int
    fault_ms: int
    """How long the faults last."""


def draw_rates(chance: Random) -> Rates:
    """Every seed has its own mixture: many faults of few kinds, or few of many."""
    if chance.random() < 0.06:
        return _calm(chance)
    some = chance.sample(KINDS, chance.randint(1, len(KINDS)))
    return Rates(
        is_on_disk=chance.random() < 0.5,
        bounds=_bounds(chance),
        is_calm=False,
        fault_gap_ms=chance.choice([0, 2_000, 5_000, 10_000, 20_000]),
        kinds=tuple(some + chance.sample(some, 1)),
        lost=_share(chance, 0.3),
        doubled=_share(chance, 0.3),
        delay_ms=chance.choice([2, 20, 200, 2_000]),
        commit_ms=chance.choice([1, 5, 50]),
        is_patient=chance.random() < 0.7,
        dies=_share(chance, 0.2),
        slow=_share(chance, 0.2),
        fails=_share(chance, 0.4),
        releases=_share(chance, 0.2),
        waits=_share(chance, 0.4),
        extends=_share(chance, 0.3),
        operator_gap_ms=chance.choice([0, 1_500, 4_000, 10_000]),
        fault_ms=chance.choice([20_000, 40_000, 60_000]),
    )


def _bounds(chance: Random) -> Bounds:
    if chance.random() < 0.4:
        return Bounds()
    return Bounds(
        jobs_max=chance.choice([4, 12, 100]),
        turns_max=chance.choice([1, 2, 5, 20]),
        scheduled_max=chance.choice([4, 8, 40]),
    )


def _share(chance: Random, most: float) -> float:
    return 0.0 if chance.random() < 0.3 else chance.random() * most


def _calm(chance: Random) -> Rates:
    return Rates(
        is_on_disk=chance.random() < 0.5,
        bounds=_bounds(chance),
        is_calm=True,
        fault_gap_ms=0,
        kinds=(),
        lost=0.0,
        doubled=0.0,
        delay_ms=20,
        commit_ms=5,
        is_patient=True,
        dies=0.0,
        slow=0.0,
        fails=0.0,
        releases=0.0,
        waits=0.0,
        extends=0.2,
        operator_gap_ms=0,
        fault_ms=30_000,
    )
