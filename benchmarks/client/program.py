"""Builds the load generator and runs it: the compiled one, or else the one in Python."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.processes import NotHere

SOURCE = Path(__file__).with_name("load.c")
FALLBACK = Path(__file__).with_name("load.py")
OVERTIME_S = 60.0
"""How much longer than it was told a run may take before it is killed."""

Report = dict[str, Any]


class Client(NamedTuple):
    """A load generator that is ready to run."""

    command: tuple[str, ...]
    is_compiled: bool

    @property
    def note(self) -> str:
        return "" if self.is_compiled else "no C compiler: the client is Python"

    def start(
        self, mode: str, port: int, seconds: float, **options: object
    ) -> subprocess.Popen[str]:
        told = {"port": port, "seconds": seconds, **options}
        flags = [str(part) for name in told for part in (f"--{name}", told[name])]
        return subprocess.Popen(
            [*self.command, mode, *flags], stdout=subprocess.PIPE, text=True
        )

    def run(self, mode: str, port: int, seconds: float, **options: object) -> Report:
        """The report of one run, which is over when this returns."""
        warmup_s = float(str(options.get("warmup", 0)))
        process = self.start(mode, port, seconds, **options)
        return finished(process, seconds + warmup_s)


def finished(process: subprocess.Popen[str], seconds: float) -> Report:
    """Waits for a run that was to take so many seconds, and reads its report."""
    try:
        output, _ = process.communicate(timeout=seconds + OVERTIME_S)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    if process.returncode:
        raise NotHere(f"the load client ended with {process.returncode}")
    report: Report = json.loads(output)
    return report


def build(folder: Path) -> Client:
    """Compiles the client into the folder; without a compiler, Python has to do."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    program = folder / "load"
    if compiler is not None:
        command = [compiler, "-O2", "-o", str(program), str(SOURCE)]
        if subprocess.run(command, check=False).returncode == 0:
            return Client((str(program),), is_compiled=True)
    return fallback()


def fallback() -> Client:
    return Client((sys.executable, str(FALLBACK)), is_compiled=False)
