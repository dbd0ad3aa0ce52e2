"""`headway simulate` and `headway demo`, as a user calls them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headway.cli.main import headway
from headway.sim.policies import POLICIES

EXAMPLES = Path(__file__).parents[2] / "examples" / "scenarios"
SMALL = """\
title = "A small one"
duration = "10s"
[[workers]]
slots = 3
[[queues]]
name = "mail"
slo = "2s"
[[queues]]
name = "calls"
slo = "10s"
limits = [{ kind = "concurrency", name = "line", max = 1 }]
[[loads]]
name = "mail"
queue = "mail"
tenant = { count = 12 }
arrivals = { kind = "poisson", per_second = 8 }
service = { kind = "exponential", mean = "250ms" }
[[loads]]
name = "calls"
queue = "calls"
arrivals = { kind = "steady", per_second = 1 }
service = { kind = "fixed", mean = "400ms" }
"""


@pytest.fixture(name="small")
def a_small_scenario(tmp_path: Path) -> str:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return str(path)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(headway, list(arguments))


def test_help_and_version_are_there() -> None:
    helped = call("simulate", "--help")
    assert helped.exit_code == 0
    assert "--compare" in helped.output
    assert all(policy in " ".join(helped.output.split()) for policy in POLICIES)
    assert call("--version").output.startswith("headway ")
    assert "simulate" in call("--help").output


def test_a_run_is_told_by_lane_tenant_and_limit(small: str) -> None:
    done = call("simulate", small)
    assert done.exit_code == 0, done.output
    for word in (
        "A small one",
        "mail",
        "calls",
        "2 s",
        "10 s",
        "(no tenant)",
        "line",
        "digest",
    ):
        assert word in done.output
    assert "more tenants" in done.output
    assert done.stderr == ""


def test_json_is_all_there_is_on_stdout(small: str) -> None:
    done = call("simulate", small, "--json", "--seed", "5", "--policy", "fifo")
    found = json.loads(done.stdout)
    assert (found["policy"], found["seed"], found["scenario"]) == ("fifo", 5, "small")
    assert set(found["lanes"]) == {"mail", "calls"}
    assert found["limits"]["line"] == {"max_used": 1, "capacity": 1}
    assert found["simulated_jobs"] == found["outcomes"]["done"]


def test_the_same_seed_gives_the_same_digest(small: str) -> None:
    digests = [
        json.loads(call("simulate", small, "--json", "--seed", seed).stdout)["digest"]
        for seed in ("1", "1", "2")
    ]
    assert digests[0] == digests[1] != digests[2]


def test_a_comparison_runs_every_policy(small: str) -> None:
    found = json.loads(call("simulate", small, "--compare", "--json").stdout)
    assert [run["policy"] for run in found] == list(POLICIES)
    told = call("simulate", small, "--compare")
    assert all(policy in told.output for policy in POLICIES)


@pytest.mark.parametrize("options", [[], ["--compare"], ["--theme", "dark"]])
def test_a_chart_is_written_where_it_was_asked_for(
    small: str, tmp_path: Path, options: list[str]
) -> None:
    chart = tmp_path / "chart.html"
    done = call("simulate", small, "--chart", str(chart), *options)
    assert done.exit_code == 0, done.output
    assert "chart.html" in done.output.replace("\n", "")
    assert "mail" in chart.read_text(encoding="utf-8")


def refused(*arguments: str) -> str:
    done = call("simulate", *arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("headway: ")
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_what_a_user_can_mend_is_said_in_one_line(small: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text(SMALL.replace('slo = "2s"', "slo = nan"))
    assert "bad.toml: queues[0].slo = nan" in refused(str(bad))
    assert "No such file" in refused(str(tmp_path / "absent.toml"))
    assert "fifo" in refused(small, "--policy", "lifo")
    assert ".html or .png" in refused(small, "--chart", str(tmp_path / "x.gif"))
    nowhere = str(tmp_path / "no" / "where.html")
    assert "No such file" in refused(small, "--chart", nowhere)


def test_names_in_a_file_are_neither_markup_nor_control_codes(tmp_path: Path) -> None:
    path = tmp_path / "hostile.toml"
    name = '"[red]mail[/]\\u001b[31m"'
    path.write_text(SMALL.replace('"mail"', name).replace("A small one", "[bold]x"))
    for options in ([], ["--compare"]):
        done = call("simulate", str(path), *options)
        assert done.exit_code == 0, done.output
        assert "[red]mail[/]" in done.output
        assert "[bold]x" in done.output
        assert "\x1b" not in done.output


def test_the_order_of_the_table_in_both_orders() -> None:
    done = call("simulate", str(EXAMPLES / "priority-orders.toml"), "--json")
    minutes = {"10:32": 2, "10:33": 3, "10:40": 10}
    starts: dict[str, list[tuple[float, str]]] = {"time": [], "priority": []}
    for row, group in json.loads(done.stdout)["tenants"].items():
        order, at, priority = row.split()
        start = minutes[at] + group["wait_ms"]["max"] / 60_000
        starts[order].append((start, f"{at} {priority}"))
    assert [row for _, row in sorted(starts["time"])] == [
        "10:32 (700)",
        "10:33 (50)",
        "10:33 (100)",
        "10:40 (1)",
        "10:40 (7)",
    ]
    assert [row for _, row in sorted(starts["priority"])] == [
        "10:40 (1)",
        "10:40 (7)",
        "10:33 (50)",
        "10:33 (100)",
        "10:32 (700)",
    ]


def test_digests_are_the_same_under_every_hash_seed(small: str) -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-m", "headway.cli.main", "simulate", small, "--json"],
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        )
        for hash_seed in ("0", "7")
    ]
    found = [json.loads(run.stdout) for run in runs]
    assert found[0]["digest"] == found[1]["digest"]
    assert found[0]["lanes"] == found[1]["lanes"]


def test_the_demonstration_shows_and_draws_the_overload(tmp_path: Path) -> None:
    done = call("demo", "--simulated", "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    for word in ("headway", "strict", "fifo", "payment", "webhook", "overload.html"):
        assert word in done.output
    assert (tmp_path / "out" / "overload.html").is_file()


def test_autoscale_shows_promises_and_workers_against_the_fewest(small: str) -> None:
    shown = call("simulate", small, "--autoscale", "--quiet")
    assert shown.exit_code == 0
    words = " ".join(shown.output.split())
    assert "used" in words
    assert "fewest" in words
    assert "at most" in words
    found = json.loads(call("simulate", small, "--autoscale", "--json").output)
    assert found["paid_s"] >= found["work_s"] > 0
    assert found["result"]["lanes"].keys() == {"mail", "calls"}


def test_autoscale_draws_the_workers_that_were_there(
    small: str, tmp_path: Path
) -> None:
    chart = tmp_path / "chart.html"
    drawn = call("simulate", small, "--autoscale", "--quiet", "--chart", str(chart))
    assert drawn.exit_code == 0
    assert chart.exists()


def test_autoscale_of_other_policies_is_refused(small: str) -> None:
    for others in (["--compare"], ["--policy", "fifo"]):
        refused = call("simulate", small, "--autoscale", *others)
        assert refused.exit_code != 0
        assert "--autoscale" in refused.output
