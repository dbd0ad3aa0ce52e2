"""The harness of the benchmarks: bounds decide, and the last run is kept."""

import json
import sys
from dataclasses import replace
from math import nan
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import core_cases, core_scale, run
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
    monkeypatch.setattr(run, "measure", lambda name: [figure])
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
    monkeypatch.setattr(run, "measure", lambda name: [Figure("a", 1, "s")])
    monkeypatch.setattr(run, "MODULES", ("sample",))
    monkeypatch.setattr(run, "RESULTS", tmp_path)
    assert run.main(["sample"]) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_benchmark_hands_its_figures_to_the_process_that_started_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = Figure("a", 1.5, "s", ceiling=2.0, note="seed 1")
    module = SimpleNamespace(run=lambda: [figure])
    monkeypatch.setitem(sys.modules, "benchmarks.sample", module)
    monkeypatch.setattr(run, "MODULES", ("sample",))
    assert run.main(["--figures", "sample"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [Figure(**row) for row in rows] == [figure]


def test_every_case_has_a_peer_that_runs_the_same_jobs() -> None:
    """Cut down to a few values, each case still starts as many as it enqueues."""
    for case, peer, _ in core_cases.CASES.values():
        for one in (case, peer):
            values = min(one.values, 2_000 if len(one.queues) == 1 else one.values)
            small = replace(one, values=values, backlog=min(one.backlog, values))
            bench = core_scale.Bench(small)
            before = bench.partition.book.last_token
            bench.repeat(200)
            assert bench.partition.book.last_token - before == 200


def test_unknown_benchmark_is_refused() -> None:
    with pytest.raises(SystemExit, match="no such benchmark: speed"):
        run.main(["speed"])
