"""A command that gives way does so for all that it starts, and to no harm of others."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.runtime.patience import BATCH, GROUP, NICENESS

LOOK = """
import json, os, pathlib
group = pathlib.Path("/proc/self/autogroup")
print(json.dumps({
    "nice": os.getpriority(os.PRIO_PROCESS, 0),
    "policy": os.sched_getscheduler(0),
    "group": group.read_text().split() if group.exists() else None,
}))
"""
GIVE_WAY = f"""
import subprocess, sys
from headway.runtime.patience import give_way
give_way()
subprocess.run([sys.executable, "-c", {LOOK!r}], check=True)
"""


def _found(*, is_alone: bool) -> dict[str, Any]:
    """What a process finds that was started by one which gives way."""
    told = subprocess.run(
        [sys.executable, "-c", GIVE_WAY],
        capture_output=True,
        text=True,
        check=True,
        start_new_session=is_alone,
    )
    found: dict[str, Any] = json.loads(told.stdout)
    return found


@pytest.mark.parametrize("is_alone", [True, False])
def test_what_is_started_later_gives_way_too(is_alone: bool) -> None:
    found = _found(is_alone=is_alone)
    assert found["nice"] == NICENESS
    if sys.platform == "linux":
        assert found["policy"] == BATCH == os.SCHED_BATCH


@pytest.mark.skipif(not GROUP.exists(), reason="the system has no groups by session")
def test_the_group_of_a_session_gives_way_only_if_it_is_the_command_s_own() -> None:
    alone = _found(is_alone=True)["group"]
    assert alone[-1] == str(NICENESS)
    before = Path(GROUP).read_text()
    shared = _found(is_alone=False)["group"]
    assert shared == before.split()
    assert Path(GROUP).read_text() == before
