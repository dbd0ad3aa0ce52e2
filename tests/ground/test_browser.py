"""A Chromium is installed where it can be, and asked for in one line where not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APT = """#!/bin/sh
echo "$1" >> "{log}"
[ "$1" = "{failing}" ] && exit 1
[ "$1" = install ] && ln -s /bin/true "{folder}/chromium"
exit 0
"""


def ran(folder: Path) -> str:
    """What is said on a machine that has these programs and no others."""
    environment = {"PATH": str(folder), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "tools.browser"],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout


def given_apt(folder: Path, failing: str = "nothing") -> Path:
    log = folder / "log"
    script = folder / "apt-get"
    script.write_text(APT.format(log=log, folder=folder, failing=failing))
    script.chmod(0o755)
    # The script's own needs.
    (folder / "ln").symlink_to("/bin/ln")
    return log


def test_a_machine_without_packages_is_told_what_is_left_out(tmp_path: Path) -> None:
    assert "there is no apt-get" in ran(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="packages are installed by root")
def test_chromium_is_installed_once(tmp_path: Path) -> None:
    log = given_apt(tmp_path)
    assert "installing Chromium" in ran(tmp_path)
    assert ran(tmp_path) == ""
    assert log.read_text().split() == ["update", "install"]


@pytest.mark.skipif(os.geteuid() != 0, reason="packages are installed by root")
def test_packages_that_are_out_of_reach_stop_nothing(tmp_path: Path) -> None:
    given_apt(tmp_path, failing="update")
    assert "apt-get update failed" in ran(tmp_path)
