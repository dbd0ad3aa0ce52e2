"""Runs the tests marked long and keeps their result in docs/results/test-long.md."""

import datetime
import subprocess
import sys
import time
from pathlib import Path

from tools import provenance

RESULT = Path("docs/results/test-long.md")
COMMAND = ("-m", "pytest", "-p", "randomly", "-m", "long", "--durations", "10")


def main() -> int:
    began_s = time.monotonic()
    command = [sys.executable, *COMMAND]
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    minutes = (time.monotonic() - began_s) / 60
    closing = lines[-1].strip(" =\n") if lines else "no output"
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(report(process.returncode, closing, minutes))
    return process.returncode


def report(exit_code: int, closing: str, minutes: float) -> str:
    day = datetime.datetime.now(datetime.UTC).date()  # noqa: TID251 - a real date
    return (
        "# Last run of the long tests\n\n"
        "Written by `make test-long`.\n\n"
        "| what | value |\n|---|---|\n"
        f"| result | {'passed' if exit_code == 0 else f'failed, exit code {exit_code}'} |\n"
        f"| closing line | {closing} |\n"
        f"| minutes | {minutes:.1f} |\n"
        f"| date | {day} |\n"
        f"| commit | {provenance.commit()} |\n"
        f"| machine | {provenance.machine()} |\n"
    )


if __name__ == "__main__":
    sys.exit(main())
