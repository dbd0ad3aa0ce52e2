"""`headway demo`: real processes, true figures, and nothing left behind."""

import io
import os
import random
import re
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import headway
from headway.cli.demo import view
from headway.cli.demo.figures import Figures
from headway.cli.demo.story import FLOODER, SLOTS, WORKERS, story
from headway.cli.main import headway as command
from headway.core.events import Leased

ROOT = Path(__file__).resolve().parents[2]
LONGEST_S = 120


def demo(*options: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "headway.cli.main", "demo", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(folder)},
        text=True,
    )


def processes(*words: str) -> list[int]:
    """Processes of a demonstration that live and name one of the words."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            line = place.read_bytes().replace(b"\0", b" ").decode()
            if "headway.cli.demo." in line and any(word in line for word in words):
                found.append(int(place.parent.name))
    return found


def test_it_ends_by_itself_with_figures_that_the_store_confirms(tmp_path: Path) -> None:
    data = tmp_path / "data"
    options = ("--seconds", "6", "--port", "0", "--data", str(data))
    with demo(*options, folder=tmp_path) as process:
        out, err = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, err
    assert err == ""
    url = re.search(r"serves at (http://127\.0\.0\.1:\d+)", out)
    assert url is not None
    welcome, _, rest = out.partition(f"The dashboard: {url[1]}/\n")
    assert welcome.endswith("Ctrl-C ends it.\n\n")
    assert rest.strip()
    assert processes(url[1], str(data)) == []
    rows = re.findall(
        r"^(payment|default|webhook) +\d+ (?:s|min) +([\d,]+) +([\d.]+) %",
        out,
        re.MULTILINE,
    )
    assert len(rows) == 3
    waits_ms = first_waits_ms(data / "headway.db")
    for queue, started, kept in rows:
        # What was leased when the workers were told to end may not be in the figures.
        count = int(started.replace(",", ""))
        assert 0 < count <= len(waits_ms[queue]) <= count + SLOTS * WORKERS
        slo_ms = story(is_quick=False).lane(queue).slo_ms
        if float(kept) == 100:
            assert max(waits_ms[queue][:count]) <= slo_ms


def first_waits_ms(path: Path) -> dict[str, list[int]]:
    """How long jobs that the tenants sent waited for their first starts, by queue."""
    found: dict[str, list[int]] = {"payment": [], "default": [], "webhook": []}
    started: set[int] = set()
    with headway.open(path) as queue:
        page = queue.history()
        while page.events:
            for event in page.events:
                if isinstance(event, Leased) and event.seq not in started:
                    started.add(event.seq)
                    if event.tenant:
                        found[event.queue].append(event.wait_ms)
            page = queue.history(page.next)
    return found


def test_a_signal_ends_it_and_a_taken_port_is_no_obstacle(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with demo("--port", str(port), folder=tmp_path) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            url = re.search(r"serves at http://127\.0\.0\.1:(\d+)", first)
            assert url is not None, first
            assert int(url[1]) != port
            assert len(processes(str(tmp_path), f":{url[1]}")) >= 1
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, err
    assert "nothing is left" in out
    assert list(tmp_path.iterdir()) == []
    assert processes(str(tmp_path), f":{url[1]}") == []


def test_its_processes_end_even_if_it_is_killed(tmp_path: Path) -> None:
    with demo("--port", "0", folder=tmp_path) as process:
        assert process.stdout is not None
        address = re.findall(r"http://[\d.:]+\d", process.stdout.readline())[0]
        left: list[int] = []
        until_s = time.monotonic() + LONGEST_S
        while len(left) < WORKERS + 2:  # a command line is not there from the start
            assert time.monotonic() < until_s
            left = processes(address, str(tmp_path))
        ends = [os.pidfd_open(pid) for pid in left]
        process.kill()
        process.communicate(timeout=LONGEST_S)
    for end in ends:
        assert select.select([end], [], [], LONGEST_S)[0]
        os.close(end)


def test_a_server_that_dies_ends_it_with_a_line_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    with demo("--port", "0", folder=tmp_path) as process:
        assert process.stdout is not None
        address = re.findall(r"http://[\d.:]+\d", process.stdout.readline())[0]
        (server,) = processes(str(tmp_path))
        os.kill(server, signal.SIGKILL)
        _, err = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 2
    assert err.startswith("headway: the server has ended")
    assert err.count("\n") == 1
    assert processes(address, str(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


def test_it_refuses_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "letter").touch()
    done = CliRunner().invoke(command, ["demo", "--data", str(tmp_path)])
    assert done.exit_code == 2
    assert "neither empty" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("is_quick", [True, False])
def test_the_first_overload_comes_soon_and_the_story_begins_again(
    is_quick: bool,
) -> None:
    told = story(is_quick=is_quick)
    rates = [sum(told.rates(float(s)).values()) for s in range(20)]
    assert max(rates) > 2 * rates[0]
    length_s = sum(phase.seconds for phase in told.phases)
    assert told.phase(length_s + 1)[0] == told.phase(1)[0]


def test_one_tenant_floods_the_shortest_promise_and_the_others_stay_as_they_are() -> (
    None
):
    told = story(is_quick=False)
    length_s = int(sum(phase.seconds for phase in told.phases))
    flood = next(s for s in range(length_s) if told.phase(s)[0].name == "flood")
    calm, flooded = told.rates(0.0), told.rates(float(flood))
    assert flooded == {**calm, (told.lanes[0].queue, FLOODER): told.flood}


SENT_MS = 1_000_000


@given(
    st.lists(
        st.tuples(st.sampled_from(["acme", "globex"]), st.integers(0, 5_000)),
        min_size=1,
        max_size=50,
    ),
    st.randoms(use_true_random=False),
)
def test_figures_count_every_start_once_in_whichever_order_they_are_told(
    waits: list[tuple[str, int]], chance: random.Random
) -> None:
    told = story(is_quick=False)
    figures = Figures(told)
    lines: list[list[object]] = []
    for number, (tenant, wait_ms) in enumerate(waits):
        lines.append(["sent", "payment", tenant, number, SENT_MS, None])
        lines.append(["start", "payment", tenant, number, wait_ms])
    chance.shuffle(lines)
    for line in lines:
        figures.tell(line, SENT_MS / 1_000)
    lane = figures.lanes["payment"]
    kept = sum(wait_ms <= lane.slo_ms for _, wait_ms in waits)
    assert (lane.sent, lane.started, lane.kept) == (len(waits), len(waits), kept)
    assert lane.waiting == {}
    assert lane.share_kept(SENT_MS) == kept / len(waits)
    totals = figures.tenants(SENT_MS)
    assert sum(starts for starts, _, _ in totals.values()) == len(waits)
    assert sum(good for _, good, _ in totals.values()) == kept


def test_a_job_that_waits_past_its_promise_is_a_broken_one() -> None:
    figures = Figures(story(is_quick=False))
    figures.tell(["sent", "payment", "acme", 1, SENT_MS, 0], 1_000.0)
    figures.tell(["sent", "payment", "hooli", 2, SENT_MS, 0], 1_000.0)
    figures.tell(["start", "payment", "acme", 1, 10], 1_000.0)
    lane = figures.lanes["payment"]
    assert lane.share_kept(SENT_MS + lane.slo_ms) == 1.0
    late_ms = SENT_MS + lane.slo_ms + 1
    assert lane.share_kept(late_ms) == 0.5
    assert figures.tenants(late_ms) == {"acme": (1, 1, 0), "hooli": (0, 0, 1)}
    scene = view.Scene(
        story(is_quick=False), figures, "http://h", 20.0, late_ms, {}, {}
    )
    assert "payment" in view.line(scene)
    assert "kept 50 %" in view.line(scene)
    for width in (80, 130):
        console = Console(width=width, record=True, file=io.StringIO())
        console.print(view.live(scene, width))
        shown = console.export_text()
        assert "Sacrificed now: hooli in payment, with 1 job past" in shown
        assert all(len(row) <= width for row in shown.splitlines())
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(view.summary(scene))
    rows = [row.split() for row in console.export_text().splitlines()]
    assert ["acme", "1", "100", "%", "0"] in rows
    assert ["hooli", "0", "0", "%", "1"] in rows
    lane.emptied(late_ms)
    assert lane.waiting == {}
