"""Which points are run: all that a grid lists, or those that narrow a search down."""

from collections.abc import Callable, Iterator
from typing import Final

from headway.sim.plan.change import Change
from headway.sim.plan.grid import Grid, Range
from headway.sim.plan.outcome import Outcome
from headway.sim.plan.replay import Point

WIDTH: Final = 3
"""Numbers of workers that a round of a search tries between those that it knows.

It does not depend on how many can run at once, or else the answer might.
"""

Run = Callable[[list[Point]], list[Outcome]]
"""Runs points side by side; outcomes in the order of the points."""


class Fewest:
    """Searches a range for the fewest workers that keep every promise.

    More workers are taken never to be worse, as they hardly ever are.
    """

    def __init__(self, within: Range) -> None:
        self._within = within
        self._known: dict[int, bool] = {}

    def wanted(self) -> list[int]:
        """The numbers to try next; none when the search is over."""
        low, high = self._within.low, self._within.high
        if not self._known:
            return sorted({low, high, *_between(low, high)})
        found = self.found()
        if found is None or found == low:
            return []
        failed = max(slots for slots, kept in self._known.items() if slots < found)
        return _between(failed, found)

    def tell(self, slots: int, *, is_kept: bool) -> None:
        self._known[slots] = is_kept

    def found(self) -> int | None:
        """The fewest so far; None if none keeps every promise."""
        return min((n for n, is_kept in self._known.items() if is_kept), default=None)


def sweep(grid: Grid, run: Run) -> list[Outcome]:
    """All points of a grid, by change and number of workers."""
    if isinstance(grid.workers, Range):
        outcomes = _searched(grid, grid.workers, run)
    else:
        outcomes = run(list(_listed(grid)))
    order = {change.name: place for place, change in enumerate(grid.changes)}
    return sorted(outcomes, key=lambda one: (order[one.name], one.workers or 0))


def _listed(grid: Grid) -> Iterator[Point]:
    numbers = grid.workers if isinstance(grid.workers, tuple) else (None,)
    for change in grid.changes:
        if change.workers is not None:
            yield _point(grid, change, change.workers)
            continue
        for slots in numbers:
            yield _point(grid, change, slots)


def _searched(grid: Grid, within: Range, run: Run) -> list[Outcome]:
    searched = [change for change in grid.changes if change.workers is None]
    searches = {change.name: Fewest(within) for change in searched}
    points = [
        _point(grid, change, change.workers)
        for change in grid.changes
        if change.workers is not None
    ]
    outcomes: list[Outcome] = []
    while True:
        for change in searched:
            wanted = searches[change.name].wanted()
            points += [_point(grid, change, slots) for slots in wanted]
        if not points:
            return outcomes
        for outcome in run(points):
            outcomes.append(outcome)
            search = searches.get(outcome.name)
            if search is not None and outcome.workers is not None:
                search.tell(outcome.workers, is_kept=outcome.is_kept(grid.bar))
        points = []


def _point(grid: Grid, change: Change, slots: int | None) -> Point:
    return Point(change=change, workers=slots, seed=grid.seed, target=grid.target)


def _between(low: int, high: int) -> list[int]:
    """Up to WIDTH numbers evenly between two, without them."""
    steps = WIDTH + 1
    spaced = {low + (high - low) * step // steps for step in range(1, steps)}
    return sorted(spaced - {low, high})
