"""Recorded load from CSV files."""

from pathlib import Path

import pytest

from headway.sim.scenario import Trace
from tests.sim.scenario_text import GOOD, loaded, refusal


def trace_load(file: str, scale: str = "1.0") -> str:
    arrivals = f'{{ kind = "trace", file = "{file}", step = "1s", scale = {scale} }}'
    return GOOD.replace('{ kind = "poisson", per_second = 5 }', arrivals)


def test_a_trace_is_found_beside_its_scenario(tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text("minute,jobs\n0,10\n2,5\n")
    (load,) = loaded(tmp_path, trace_load("day.csv", "0.5")).loads
    assert load.arrivals == Trace(jobs=(5, 0, 3), step_ms=1_000)


@pytest.mark.parametrize(
    ("csv", "said"),
    [
        (None, "No such file"),
        ("", "no column minute"),
        ("minute,count\n0,1\n", "no column jobs"),
        ("minute,jobs\n", "no rows"),
        ("minute,jobs\n0,1.5\n", "line 2: jobs = '1.5'"),
        ("minute,jobs\n0,-1\n", "line 2: jobs = '-1'"),
        ("minute,jobs\n0\n", "line 2: jobs = ''"),
        (f"minute,jobs\n0,{2**63}\n", f"line 2: jobs = {2**63}"),
        (f"minute,jobs\n{2**63},1\n", f"line 2: minute = {2**63}"),
        ("minute,jobs\n5,1\n5,1\n", "line 3: minutes must ascend"),
        ('minute,jobs\n0,"1', "unexpected end"),
        ('"minute', "unexpected end"),
    ],
)
def test_a_bad_trace_is_refused_in_one_line(
    tmp_path: Path, csv: str | None, said: str
) -> None:
    if csv is not None:
        (tmp_path / "day.csv").write_text(csv)
    message = refusal(tmp_path, trace_load("day.csv"))
    assert "loads[0].arrivals.file = 'day.csv': " in message
    assert said in message
