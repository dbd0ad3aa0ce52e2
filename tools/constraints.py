"""Writes constraints.txt: the exact versions that .venv holds, for every install."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

FILE = Path("constraints.txt")
HEADER = "# Exact versions for every install. Written by `make constraints`.\n"
NOT_PINNED = ("headway", "wheel")


def main() -> None:
    pins = installed()
    # The build shares packages with .venv: those must agree.
    write(pins)
    pins = sorted({*pins, *build_tools()}, key=str.lower)
    write(pins)
    print(f"{FILE}: {len(pins)} packages")


def write(pins: list[str]) -> None:
    FILE.write_text(HEADER + "\n".join(pins) + "\n")


def installed() -> list[str]:
    excluded = [part for name in NOT_PINNED for part in ("--exclude", name)]
    return pip("freeze", "--all", *excluded).splitlines()


def build_tools() -> list[str]:
    """What builds the package; it comes and goes with each install."""
    project = tomllib.loads(Path("pyproject.toml").read_text())
    wanted = [*project["build-system"]["requires"], "editables"]
    flags = ("--quiet", "--dry-run", "--ignore-installed", "--report", "-")
    report = json.loads(pip("install", *flags, "--constraint", str(FILE), *wanted))
    found = (item["metadata"] for item in report["install"])
    return [f"{package['name']}=={package['version']}" for package in found]


def pip(*arguments: str) -> str:
    command = [sys.executable, "-m", "pip", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
