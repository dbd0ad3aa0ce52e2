"""`headway plan` says in one line what is wrong, before anything is started."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headway.cli.main import headway

SCENARIO = """\
duration = "10s"
workers = [{ slots = 3 }]
[[queues]]
name = "mail"
[[loads]]
name = "mail"
queue = "mail"
arrivals = { kind = "steady", per_second = 1 }
service = { kind = "fixed", mean = "1s" }
"""


@pytest.fixture(name="scenario")
def a_scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture(name="grid")
def a_grid(tmp_path: Path) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text("workers = [1, 2]\n")
    return path


def call(*arguments: object) -> Result:
    return CliRunner().invoke(headway, ["plan", *map(str, arguments)])


def refusal(*arguments: object) -> str:
    refused = call(*arguments)
    assert refused.exit_code == 2, refused.output
    assert len(refused.output.splitlines()) == 1, refused.output
    return refused.output


def test_a_lake_and_a_scenario_exclude_each_other(grid: Path, scenario: Path) -> None:
    either = "either --lake or --scenario"
    assert either in refusal("--grid", grid)
    assert either in refusal("--grid", grid, "--lake", "x", "--scenario", scenario)


def test_a_span_is_of_a_lake_and_goes_forward(grid: Path, scenario: Path) -> None:
    of_lake = refusal("--grid", grid, "--scenario", scenario, "--queue", "mail")
    assert "are of a lake" in of_lake
    span = ("--from", "2026-11-02", "--to", "2026-11-01")
    assert "--to must be after --from" in refusal("--grid", grid, "--lake", "x", *span)
    soon = refusal("--grid", grid, "--lake", "x", "--from", "soon")
    assert "is no time such as" in soon


def test_a_bad_grid_is_refused_by_its_key(scenario: Path, tmp_path: Path) -> None:
    grid = tmp_path / "bad.toml"
    grid.write_text("workers = [0]\n")
    assert "bad.toml: workers[0] = 0" in refusal("--grid", grid, "--scenario", scenario)
    grid.write_text('[[change]]\nname = "x"\nlimits.line = 3\n')
    refused = refusal("--grid", grid, "--scenario", scenario)
    assert "change[0].limits.line = 3: no limit of this name" in refused


def test_a_missing_scenario_is_named(grid: Path, tmp_path: Path) -> None:
    refused = refusal("--grid", grid, "--scenario", tmp_path / "none.toml")
    assert "none.toml: No such file" in refused
