"""Grids are read whole or refused by the key that is wrong; searches find the fewest."""

from pathlib import Path

import pytest

from headway.sim.plan.change import AS_IT_IS
from headway.sim.plan.grid import GridError, Range, load_grid, read_grid
from headway.sim.plan.outcome import LaneKept, Outcome
from headway.sim.plan.replay import Point
from headway.sim.plan.search import sweep

GOOD = """\
workers = { from = 2, to = 40 }
target = 0.95

[[change]]
name = "margins"
queue = "mail"
margin = ["0s", "500ms"]

[[change]]
name = "shop first"
weights.shop = 2
limits.partner = [30, 60]
"""


def loaded(folder: Path, text: str) -> str:
    path = folder / "grid.toml"
    path.write_text(text)
    with pytest.raises(GridError) as refused:
        load_grid(path)
    message = str(refused.value)
    assert "grid.toml: " in message
    assert len(message.splitlines()) == 1
    return message


def test_a_grid_has_a_change_for_every_choice_of_values(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(GOOD)
    grid = load_grid(path)
    assert grid.workers == Range(2, 40)
    assert grid.target == 0.95
    assert [change.name for change in grid.changes] == [
        AS_IT_IS.name,
        "margins (margin 0s)",
        "margins (margin 500ms)",
        "shop first (partner 30)",
        "shop first (partner 60)",
    ]
    assert grid.changes[2].margin_ms == 500
    assert grid.changes[4].limits == {"partner": 60}
    assert grid.changes[4].weights == {"shop": 2.0}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("workers = [0]", "workers[0] = 0: must be from 1"),
        ("workers = []", "workers = []: at least one"),
        ("workers = { from = 5, to = 2 }", "workers.to = 2: must be at least 5"),
        ("workers = { from = 5 }", "workers.to: is missing"),
        ("wrokers = [1]", "wrokers = [1]: unknown key; did you mean workers?"),
        ("[[change]]\nslo = '1s'", "change[0].name: is missing"),
        ("[[change]]\nname = 'x'", "change[0] = 'x': changes nothing"),
        (
            "[[change]]\nname = 'x'\nslo = ['1s', 'soon']",
            "change[0].slo[1] = 'soon': must be a duration",
        ),
        (
            "[[change]]\nname = 'x'\nweights.a = -1",
            "change[0].weights.a = -1: must be from",
        ),
        (
            "[[change]]\nname = 'x'\nslo = '1s'\n[[change]]\nname = 'x'\nslo = '2s'",
            "change[1].name = 'x': used twice",
        ),
        ("[[change]]\nname = 'x'\nfloor = 2", "change[0].floor = 2: must be from"),
        (
            "[[change]]\nname = 'x'\nlane = '2s'\nfloor = 0.5",
            "change[0].lane = 'x': says which lane",
        ),
        ("target = 2", "target = 2: must be from 0 to 1"),
        ("workers = ", "grid.toml: "),
    ],
)
def test_what_is_wrong_in_a_grid_is_named(tmp_path: Path, text: str, told: str) -> None:
    assert told in loaded(tmp_path, text)


def test_a_grid_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(GridError, match=r"none\.toml: No such file"):
        load_grid(tmp_path / "none.toml")


def outcome(point: Point, attained: float) -> Outcome:
    lane = LaneKept(slo_ms=1, waits=10, attained=attained, p99_ms=0)
    return Outcome(
        name=point.change.name,
        workers=point.workers,
        seed=1,
        lanes={"mail": lane},
        sufferers=[],
        sufferers_count=0,
        utilisation=0.5,
        slots=1.0,
        unstarted=0,
        refused=0,
        digest="",
    )


@pytest.mark.parametrize("enough", [2, 3, 17, 39, 40, 41])
def test_a_search_ends_with_the_fewest_and_one_less(enough: int) -> None:
    rounds: list[list[Point]] = []

    def run(points: list[Point]) -> list[Outcome]:
        rounds.append(points)
        return [
            outcome(point, 1.0 if (point.workers or 0) >= enough else 0.5)
            for point in points
        ]

    grid = read_grid({"workers": {"from": 2, "to": 40}})
    tried = {one.workers: one.is_kept(0.99) for one in sweep(grid, run)}
    assert tried.get(enough, False) == (enough <= 40)
    assert not tried.get(enough - 1, False)
    assert enough > 40 or enough == 2 or enough - 1 in tried
    assert len(rounds) <= 4
    asked = [point.workers for points in rounds for point in points]
    assert len(asked) == len(set(asked))


def test_every_change_is_tried_with_every_number_unless_it_names_its_own() -> None:
    grid = read_grid(
        {
            "workers": [4, 2],
            "change": [{"name": "x", "floor": 0.1}, {"name": "y", "workers": 9}],
        }
    )
    found = sweep(grid, lambda points: [outcome(point, 1.0) for point in points])
    assert [(one.name, one.workers) for one in found] == [
        (AS_IT_IS.name, 2),
        (AS_IT_IS.name, 4),
        ("x", 2),
        ("x", 4),
        ("y", 9),
    ]
