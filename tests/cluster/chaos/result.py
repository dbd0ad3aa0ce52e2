"""The page that keeps what came of the last long run."""

import datetime
from collections.abc import Mapping
from pathlib import Path

from tools import provenance

RESULT = Path("docs/results/chaos.md")


def report(
    seed: int, seconds: float, figures: Mapping[str, object], faults: list[str]
) -> str:
    day = datetime.datetime.now(datetime.UTC).date()  # noqa: TID251 - a real date
    rows = "".join(f"| {name} | {value} |\n" for name, value in figures.items())
    return (
        "# Last run of `make chaos`\n\n"
        "Three nodes over one PostgreSQL under faults, then a drain; "
        "[how](../testing.md#chaos).\n\n"
        "| what | value |\n|---|---:|\n"
        f"| result | {f'{len(faults)} faults' if faults else 'no faults'} |\n"
        f"| seed | {seed} |\n"
        f"| seconds of faults | {seconds:g} |\n"
        f"{rows}"
        f"| date | {day} |\n"
        f"| commit | {provenance.commit()} |\n"
        f"| machine | {provenance.machine()} |\n"
    )
