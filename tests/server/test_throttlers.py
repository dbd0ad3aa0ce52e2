"""`headway serve --throttler`, as its user meets it."""

import json
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.process import PATIENCE_S, Served, command

HERE = "tests.runtime.throttlers"
BY_KIND = ("--throttler", f"q={HERE}:by_kind")


def put(served: Served, *kinds: str) -> None:
    jobs = [{"kind": kind, "tenant": kind} for kind in kinds]
    assert served.ask("POST", "/v1/queues/q/jobs", jobs).status == 201


def lease(served: Served) -> list[str]:
    """The kinds of what starts; it is done then."""
    body = {"queues": ["q"], "max": 10, "wait": "20s"}
    jobs = served.ask("POST", "/v1/lease", body).json["jobs"]
    tokens = [job["token"] for job in jobs]
    if tokens:
        assert served.ask("POST", "/v1/ack", {"tokens": tokens}).status == 200
    return [job["kind"] for job in jobs]


def until(look: Callable[[], bool]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not look():
        assert time.monotonic() < until_s, look


def why(served: Served, seq: int) -> str:
    reasons = served.ask("GET", f"/v1/jobs/p1_{seq}/why").json["reasons"]
    return " ".join(reason["text"] for reason in reasons)


@pytest.mark.parametrize("options", [(), ("--apart",)], ids=["thread", "apart"])
def test_it_is_asked_wherever_the_owner_is(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    served = Served(tmp_path / "data", *BY_KIND, *options)
    served.ask("PUT", "/v1/queues/q", {})
    put(served, "refuse", "start", "none")
    assert lease(served) == ["start"]
    until(lambda: "answered None" in why(served, 3))
    changed = served.ask("PATCH", "/v1/queues/q", {"throttler_fails": "open"})
    assert changed.json["rules"]["throttler_fails"] == "open"
    assert lease(served) == ["none"]
    metrics = served.ask("GET", "/metrics").body.decode()
    assert 'headway_throttler_verdicts_total{queue="q",verdict="refuse"} 1' in metrics
    assert 'headway_throttler_verdicts_total{queue="q",verdict="start"} 1' in metrics
    assert 'headway_throttler_errors_total{queue="q",error="raised"}' in metrics
    assert served.stop() == 0
    failed = [x for x in served.events() if x["event"] == "throttler failed"]
    assert failed[0]["queue"] == "q"
    assert failed[0]["error"] == "no verdict"


def test_what_it_prints_corrupts_nothing_and_its_errors_tell_no_values(
    tmp_path: Path,
) -> None:
    served = Served(tmp_path / "data", "--throttler", f"q={HERE}:loud")
    served.ask("PUT", "/v1/queues/q", {})
    put(served, "raise", "start")
    assert lease(served) == ["start"]
    assert "ValueError: a secret of the payload (at throttlers.py:" in why(served, 1)
    assert served.stop() == 0
    events = served.events()
    assert "forged" not in [line["event"] for line in events]
    said = [line["text"] for line in events if line["event"] == "throttler output"]
    assert '{"event": "forged"}' in said
    assert "a secret" not in json.dumps([x for x in events if "text" not in x])


def test_it_ends_with_a_server_that_is_killed_and_the_next_one_goes_on(
    tmp_path: Path,
) -> None:
    served = Served(tmp_path / "data", *BY_KIND, "--throttler-timeout", "60s")
    served.ask("PUT", "/v1/queues/q", {})
    folder = tmp_path / "asked"
    folder.mkdir()
    written = b64encode(str(folder).encode()).decode()
    jobs = [{"kind": "hang", "payload_base64": written}]
    assert served.ask("POST", "/v1/queues/q/jobs", jobs).status == 201
    pid = folder / "pid"

    def is_asked() -> bool:
        # One that comes too late for its millisecond asks nobody.
        served.ask("POST", "/v1/lease", {"queues": ["q"], "wait": "1ms"})
        return pid.exists() and bool(pid.read_text())

    until(is_asked)
    served.kill()
    served.stop()
    until(lambda: not Path(f"/proc/{pid.read_text()}").exists())
    again = Served(tmp_path / "data")
    assert lease(again) == ["hang"]
    assert again.stop() == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--throttler", "q=nothing"), "a throttler is named as MODULE:CALLABLE"),
        (("--throttler", "q=no_such:f"), "there is no module no_such"),
        (("--throttler", f"q={HERE}:number"), "can't be called"),
        ((*BY_KIND, *BY_KIND), "a queue has one --throttler at most"),
        ((*BY_KIND, "--throttler-timeout", "2m"), "must be from 10ms to 60s"),
        (("--throttler", "nothing"), "is no name=value"),
    ],
)
def test_a_bad_name_is_one_line_and_exit_2(
    tmp_path: Path, options: tuple[str, ...], text: str
) -> None:
    data = tmp_path / "data"
    ended = subprocess.run(
        command("serve", "--data", str(data), "--port", "0", *options),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 2, ended.stderr
    assert text in ended.stderr.strip().splitlines()[-1]
    assert "Traceback" not in ended.stderr
    assert not data.exists()
