"""Runs one small simulation beside the server: a process of its own, within bounds."""

import subprocess
import sys
import tempfile
import threading
import tomllib
from pathlib import Path
from typing import Any, Final

import msgspec

from headway.server.problems import Refused
from headway.wire.live import Simulated

WALL_S: Final = 30.0
JOBS_MAX: Final = 200_000
PATH: Final = Path("what-if.toml")
_TEXT_MAX: Final = 500
_running: Final = threading.Lock()


def simulate(scenario: str) -> Simulated:
    """In a thread that may wait. One at a time: a server has other things to do."""
    check(scenario.encode())
    if not _running.acquire(blocking=False):
        raise Refused("simulation_busy")
    try:
        with tempfile.TemporaryDirectory(prefix="headway-whatif-") as folder:
            return _simulated(scenario.encode(), folder)
    finally:
        _running.release()


def check(content: bytes) -> None:
    """Refuses what is no scenario, names a file or is too large, before a process is."""
    from headway.sim.scenario import ScenarioError, expected_jobs
    from headway.sim.scenario_file import parse_scenario

    try:
        if _names_a_file(tomllib.loads(content.decode())):
            raise Refused("bad_value", "it can't read files of a server", "scenario")
        scenario = parse_scenario(content, PATH)
    except (ScenarioError, ValueError, RecursionError) as error:
        text = "".join(c if c.isprintable() else " " for c in str(error))
        raise Refused("bad_value", text[:_TEXT_MAX], "scenario") from error
    jobs = sum(expected_jobs(load, scenario.duration_ms) for load in scenario.loads)
    if jobs > JOBS_MAX:
        text = f"some {jobs:,.0f} jobs; at most {JOBS_MAX:,} are run"
        raise Refused("simulation_stopped", text)


def _names_a_file(value: Any) -> bool:
    if isinstance(value, dict):
        return "file" in value or any(map(_names_a_file, value.values()))
    return isinstance(value, list) and any(map(_names_a_file, value))


def _simulated(content: bytes, folder: str) -> Simulated:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "headway.server.simulating"],
            input=content,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            timeout=WALL_S,
            check=False,
        )
        return msgspec.json.decode(done.stdout, type=Simulated)
    except subprocess.TimeoutExpired as error:
        text = f"it took more than {WALL_S:.0f} s"
        raise Refused("simulation_stopped", text) from error
    except msgspec.MsgspecError as error:
        text = "it took more time or memory than it may"
        raise Refused("simulation_stopped", text) from error
