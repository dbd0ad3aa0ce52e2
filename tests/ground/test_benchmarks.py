"""The harness of the benchmarks: bounds decide, and the last run is kept."""

import json
import sys
from math import nan
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import run
from benchmarks.figure import Figure


@pytest.mark.parametrize(
    ("value", "floor", "ceiling", "verdict"),
    [
        (10.0, 10.0, None, "ok"),
        (9.9, 10.0, None, "below"),
        (2.0, None, 2.0, "ok"),
        (2.1, None, 2.0, "above"),
        (5.0, None, None, "shown"),
        (nan, 1.0, None, "below"),
        (nan, None, 1.0, "above"),
    ],
)
def test_bounds_decide(
    value: float, floor: float | None, ceiling: float | None, verdict: str
) -> None:
    figure = Figure("speed", value, "jobs/s", floor, ceiling)
    assert figure.verdict == verdict
    assert figure.is_good == (verdict in {"ok", "shown"})


@pytest.mark.parametrize(("value", "exit_code"), [(30_000.0, 0), (20_000.0, 1)])
def test_run_fails_below_a_floor_and_keeps_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float, exit_code: int
) -> None:
    figure = Figure("simulator", value, "jobs/s", floor=25_000, note="seed 1")
    module = SimpleNamespace(run=lambda: [figure])
    monkeypatch.setitem(sys.modules, "benchmarks.sample", module)
    monkeypatch.setattr(run, "MODULES", ("sample",))
    monkeypatch.setattr(run, "RESULTS", tmp_path)
    assert run.main([]) == exit_code
    kept = json.loads((tmp_path / "bench.json").read_text())
    assert kept["figures"][0]["value"] == value
    assert {"commit", "machine", "date"} <= set(kept)
    assert "| simulator |" in (tmp_path / "bench.md").read_text()


def test_run_of_some_leaves_the_last_full_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = SimpleNamespace(run=lambda: [Figure("a", 1, "s")])
    monkeypatch.setitem(sys.modules, "benchmarks.sample", module)
    monkeypatch.setattr(run, "MODULES", ("sample",))
    monkeypatch.setattr(run, "RESULTS", tmp_path)
    assert run.main(["sample"]) == 0
    assert list(tmp_path.iterdir()) == []


def test_unknown_benchmark_is_refused() -> None:
    with pytest.raises(SystemExit, match="no such benchmark: speed"):
        run.main(["speed"])
