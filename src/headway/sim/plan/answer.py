"""The answer of a plan: how far a replay can be trusted, the points, and one sentence."""

from typing import Final

import msgspec

from headway.sim.plan.change import AS_IT_IS
from headway.sim.plan.grid import Grid
from headway.sim.plan.outcome import Outcome
from headway.sim.plan.recording import Happened, Recording
from headway.sim.plan.replay import slot_ms

TRUSTED: Final = 0.05
"""A replay that is further off than this in any lane is warned of."""


class LaneCalibration(msgspec.Struct, frozen=True, kw_only=True):
    """One lane, as it was and as the replay of the same settings has it."""

    slo_ms: int
    waits: int
    recorded: float
    replayed: float

    @property
    def error(self) -> float:
        return self.replayed - self.recorded


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    lanes: dict[str, LaneCalibration]
    error_points: float
    """The largest error of any lane, in percentage points."""
    slots_mean: float
    """Worker slots that really served, on average and at most."""
    slots_most: int
    gap_ms: int
    utilisation: float
    notes: list[str]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is shown."""

    calibration: Calibration | None
    """None for a scenario: there is nothing to compare with."""
    target: float
    outcomes: list[Outcome]
    recommended: int | None
    """The fewest workers that keep every promise under the rules as they are."""
    recommendation: str


def calibration(recording: Recording, replayed: Outcome) -> Calibration:
    """The replay of what really ran against what really happened."""
    happened = recording.happened
    assert happened is not None
    span = recording.span
    lanes = {}
    for name, lane in happened.result.lanes.items():
        found = replayed.lanes.get(name)
        lanes[name] = LaneCalibration(
            slo_ms=lane.slo_ms,
            waits=lane.jobs,
            recorded=lane.attained,
            replayed=1.0 if found is None else found.attained,
        )
    error = max((abs(lane.error) for lane in lanes.values()), default=0.0)
    from_ms, to_ms = span.from_ms - span.epoch_ms, span.to_ms - span.epoch_ms
    there_ms = slot_ms(happened.workers, from_ms, to_ms)
    return Calibration(
        lanes=lanes,
        error_points=round(error * 100, 2),
        slots_mean=round(there_ms / max(1, to_ms - from_ms), 2),
        slots_most=most_slots(happened),
        gap_ms=happened.gap_ms,
        utilisation=round(happened.busy_ms / max(1, there_ms), 4),
        notes=_notes(recording, error),
    )


def most_slots(happened: Happened) -> int:
    """The most that were there at once."""
    changes: list[tuple[int, int]] = []
    for one in happened.workers:
        changes.append((one.at_ms, one.slots))
        if one.until_ms is not None:
            changes.append((one.until_ms, -one.slots))
    there = most = 0
    for _, slots in sorted(changes):
        there += slots
        most = max(most, there)
    return most


def plan(grid: Grid, outcomes: list[Outcome], found: Calibration | None) -> Plan:
    """The points and what follows from them."""
    own = [one for one in outcomes if one.name == AS_IT_IS.name and one.workers]
    fewest = _fewest(own, grid.bar)
    return Plan(
        calibration=found,
        target=grid.target,
        outcomes=outcomes,
        recommended=None if fewest is None else fewest.workers,
        recommendation=_recommendation(grid, outcomes, own, fewest),
    )


def _fewest(outcomes: list[Outcome], bar: float) -> Outcome | None:
    """The point with the fewest workers from which on every promise is kept."""
    found = None
    for one in sorted(outcomes, key=lambda one: -(one.workers or 0)):
        if not one.is_kept(bar):
            break
        found = one
    return found


def _recommendation(
    grid: Grid, outcomes: list[Outcome], own: list[Outcome], fewest: Outcome | None
) -> str:
    share = f"at least {_percent(grid.target)} in every lane"
    if grid.reserve:
        share += f", and {_percent(grid.bar)} in the replay"
    if not own:
        (now,) = [one for one in outcomes if one.name == AS_IT_IS.name]
        kept = "keep every promise" if now.is_kept(grid.target) else _worst(now)
        text = f"The workers that are there {kept} ({share})"
    elif fewest is None:
        most = max(own, key=lambda one: one.workers or 0)
        text = (
            f"No number of workers that was tried keeps every promise ({share}): "
            f"{most.workers} {_worst(most)}"
        )
    else:
        text = f"{fewest.workers} workers are the fewest that keep every promise"
        text += f" ({share})"
        fewer = [one for one in own if (one.workers or 0) < (fewest.workers or 0)]
        if fewer:
            next_one = max(fewer, key=lambda one: one.workers or 0)
            text += f"; {next_one.workers} {_worst(next_one)}"
        else:
            text += " of those tried; fewer may do"
    return f"{text}.{_others(grid, outcomes)}"


def _others(grid: Grid, outcomes: list[Outcome]) -> str:
    """What the named changes would come to, where workers were varied with them."""
    told = []
    for change in grid.changes[1:]:
        own = [one for one in outcomes if one.name == change.name and one.workers]
        fewest = _fewest(own, grid.bar)
        if fewest is not None and change.workers is None:
            told.append(f"{fewest.workers} with {change.name!r}")
        elif own and change.workers is None:
            told.append(f"no number that was tried with {change.name!r}")
    return f" It would be {', '.join(told)}." if told else ""


def _worst(outcome: Outcome) -> str:
    """What a point that breaks promises does to its worst lane."""
    name = outcome.worst
    if name is None:
        return "have nothing to do"
    return f"keep {_percent(outcome.lanes[name].attained)} in {name}"


def _notes(recording: Recording, error: float) -> list[str]:
    notes = []
    if error > TRUSTED:
        notes.append(
            f"the replay is off by {error * 100:.1f} points: do not rely on what follows"
        )
    told = {row.queue for row in recording.rules}
    unknown = [name for name in recording.queues if name not in told]
    if unknown:
        notes.append(
            f"rules of {', '.join(unknown)} are not in the lake: defaults are assumed"
        )
    return notes


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"
