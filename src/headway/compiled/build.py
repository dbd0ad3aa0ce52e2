"""Makes machine code of the hot modules, by mypyc and the machine's C compiler."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from headway.compiled import (
    BY_HAND,
    LIBRARY,
    MODULES,
    SOURCES,
    STAMP,
    SWITCH,
    file_of,
    stamp,
)

LOG: Final = ".log"
"""What a compiler has said when it failed is in a file of this suffix."""


class CannotCompile(Exception):
    """Something that it takes is missing, or a compiler has failed."""


def build(place: Path, say: Callable[[str], None]) -> None:
    """The build appears in the folder `place` whole, or not at all."""
    place = place.absolute()
    _check(place)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix="making-") as work:
            _build(place, Path(work), say)
    except OSError as error:
        raise CannotCompile(f"{place}: {error.strerror or error}") from error


def remove(place: Path) -> bool:
    """Whether there was a build. Nothing is removed that is none."""
    if not (place / STAMP).exists():
        return False
    try:
        shutil.rmtree(place)
    except OSError as error:
        raise CannotCompile(f"{place}: {error.strerror or error}") from error
    return True


def _check(place: Path) -> None:
    """Everything that it takes, by name, before a minute is spent."""
    if place.exists() and not (place / STAMP).exists():
        raise CannotCompile(f"{place} is there, and no build: name another folder")
    missing = [
        name
        for name in ("mypyc", "setuptools")
        if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise CannotCompile(
            f"{' and '.join(missing)} missing: pip install 'headway[compile]'"
        )
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    if not any(map(shutil.which, (compiler.split()[0], "cc", "gcc"))):
        raise CannotCompile(
            f"no C compiler: neither {compiler.split()[0]} nor cc is there; "
            "Debian has one in the package gcc"
        )
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not header.exists():
        raise CannotCompile(
            f"no {header}; Debian has it in the package python3-dev, "
            "and images of python:… have it"
        )


def _build(place: Path, work: Path, say: Callable[[str], None]) -> None:
    made_of = stamp()
    say(f"{len(MODULES)} modules, a minute or two")
    _run(work, place.with_suffix(LOG))
    ready = work / "ready"
    ready.mkdir()
    for module in (LIBRARY, *BY_HAND, *MODULES):
        name = work / "lib" / Path(*module.split("."))
        made = name.with_name(file_of(name.name))
        if module in BY_HAND and not made.exists():
            say(f"{module} was not made: many tenants cost more than they could")
            continue
        made.replace(ready / file_of(module))
    if stamp() != made_of:
        raise CannotCompile("the sources were changed meanwhile: try again")
    (ready / STAMP).write_text(made_of)
    if (place / STAMP).exists():
        place.replace(work / "old")
    ready.replace(place)


def _run(work: Path, log: Path) -> None:
    """In a process of its own: the compiler of modules takes some hundred megabytes."""
    command = [sys.executable, "-m", "headway.compiled.translate", str(work)]
    environment = {**os.environ, SWITCH: "0"}
    # Apart from whatever else is installed beside it: mypy takes that for ours.
    apart = work / "sources"
    apart.mkdir()
    (apart / "headway").symlink_to(SOURCES / "headway")
    done = subprocess.run(  # noqa: S603 this interpreter, and a folder of ours
        command,
        cwd=apart,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        log.write_text(done.stdout)
        raise CannotCompile(f"the compiler failed, and {log} has all that it said")
