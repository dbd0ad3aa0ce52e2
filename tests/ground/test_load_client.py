"""The load client counts what a server really did, compiled or not."""

import json
import shutil
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from benchmarks.client import program
from benchmarks.client.program import Client
from benchmarks.processes import NotHere, started, wait_for_line

STAND_IN = Path(__file__).with_name("stand_in.py")
LONG_S = 60.0
"""For runs that end by themselves, on however slow a machine."""

Serve = Callable[..., int]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Client:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    return program.build(tmp_path_factory.mktemp("client"))


@pytest.fixture(params=["compiled", "python"])
def client(request: pytest.FixtureRequest) -> Client:
    if request.param == "python":
        return program.fallback()
    found: Client = request.getfixturevalue("compiled")
    assert found.is_compiled
    return found


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as stack:

        def begin(*flags: str) -> int:
            log = tmp_path / "log"
            command = [sys.executable, str(STAND_IN), *flags]
            process = stack.enter_context(started(command, log))
            line = wait_for_line(process, log, "http://", LONG_S)
            return int(line.rpartition(":")[2])

        yield begin


def seen(port: int) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=LONG_S) as answer:
        told: dict[str, Any] = json.load(answer)
    return told


@pytest.mark.parametrize("flag", ["--sized", "--chunked"])
def test_cycle_counts_what_the_server_acked(
    client: Client, serve: Serve, flag: str
) -> None:
    port = serve(flag)
    report = client.run("cycle", port, LONG_S, jobs=2_000)
    counts = {name: report[name] for name in ("enqueued", "leased", "acked")}
    assert counts == {"enqueued": 2_000, "leased": 2_000, "acked": 2_000}
    told = seen(port)
    assert {name: told[name] for name in counts} == counts
    assert told["bytes"] == 2_000 * 200
    assert (report["errors"], report["connects"]) == (0, 8)
    assert report["enqueue"]["count"] == report["ack"]["count"] == 20
    assert report["client_cpu_s"] > 0
    assert report["all"]["p50_ms"] <= report["all"]["p99_ms"] <= report["all"]["max_ms"]


def test_single_carries_one_job_a_request_and_the_token(
    client: Client, serve: Serve
) -> None:
    port = serve()
    report = client.run(
        "single", port, LONG_S, jobs=200, connections=10, token="s3cret"
    )
    assert report["enqueue"]["count"] == report["ack"]["count"] == 200
    assert report["acked"] == seen(port)["acked"] == 200
    assert seen(port)["token Bearer s3cret"] >= 600


def test_latency_finds_the_moment_of_sending_in_every_job(
    client: Client, serve: Serve
) -> None:
    report = client.run("latency", serve(), 0.5, rate=200, pollers=8)
    assert report["leased"] > 0
    assert report["start"]["count"] == report["leased"]
    assert (report["unstamped"], report["errors"]) == (0, 0)
    assert 0 < report["start"]["p50_ms"] <= report["start"]["p99_ms"]


def test_polls_are_dropped_and_opened_again(client: Client, serve: Serve) -> None:
    port = serve()
    report = client.run("polls", port, 0.8, connections=50, every=0.3, wait="30s")
    assert report["drops"] >= 1
    assert 0 < report["connects"] <= 50 * (report["drops"] + 1)
    if client.is_compiled:
        assert report["connects"] == 50 * (report["drops"] + 1)
    assert report["leased"] == report["errors"] == 0


def test_others_are_served_beside_slow_clients(client: Client, serve: Serve) -> None:
    port = serve()
    slow = client.start("slow", port, 0.6, queue="slow")
    others = client.run("cycle", port, LONG_S, jobs=500, queue="others")
    report = program.finished(slow, LONG_S)
    assert others["acked"] == 500
    assert report["endless_bytes"] > 0
    assert report["errors"] == 0
    assert seen(port)["endless"] >= 1


def test_refusals_are_errors_and_the_first_is_kept(
    client: Client, serve: Serve
) -> None:
    report = client.run("cycle", serve("--refusing"), 0.3, connections=2)
    assert report["errors"] == report["requests"] > 0
    assert report["acked"] == 0
    assert report["first_error"].startswith("enqueue answered 503: ")


def test_unknown_mode_is_refused(compiled: Client) -> None:
    with pytest.raises(NotHere, match="ended with 2"):
        compiled.run("fly", 1, 1.0)
