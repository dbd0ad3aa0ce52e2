"""Runs the benchmarks, prints one table, keeps it in docs/results, and exits 1 when
a figure breaks its bounds. `python -m benchmarks.run NAME ...` runs only those named.
"""

import datetime
import importlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.figure import Figure, shown
from tools import provenance

MODULES = ("core_scale", "simulator", "timers")
"""Modules of this folder, each with `run() -> list[Figure]`."""

RESULTS = Path("docs/results")


def main(names: Sequence[str]) -> int:
    unknown = set(names) - set(MODULES)
    if unknown:
        sys.exit(f"no such benchmark: {', '.join(sorted(unknown))}")
    figures = [figure for name in names or MODULES for figure in measure(name)]
    origin = {
        "date": str(datetime.datetime.now(datetime.UTC).date()),  # noqa: TID251
        "commit": provenance.commit(),
        "machine": provenance.machine(),
    }
    console = Console()
    console.print(table(figures, origin))
    if not names:
        write(RESULTS, figures, origin)
    bad = [figure.name for figure in figures if not figure.is_good]
    if bad:
        console.print(f"out of bounds: {', '.join(bad)}", style="bold red")
    return 1 if bad else 0


def measure(name: str) -> list[Figure]:
    print(f"measuring {name} ...", file=sys.stderr, flush=True)
    figures: list[Figure] = importlib.import_module(f"benchmarks.{name}").run()
    return figures


def table(figures: Sequence[Figure], origin: dict[str, str]) -> Table:
    caption = f"commit {origin['commit']} · {origin['machine']}"
    grid = Table("figure", title="Headway's figures", caption=caption)
    grid.add_column("value", justify="right")
    grid.add_column("unit")
    grid.add_column("bounds", justify="right")
    grid.add_column("verdict")
    grid.add_column("note")
    for figure in figures:
        style = {"ok": "green", "shown": "dim"}.get(figure.verdict, "bold red")
        verdict = f"[{style}]{figure.verdict}[/]"
        value = shown(figure.value)
        grid.add_row(
            figure.name, value, figure.unit, figure.bounds, verdict, figure.note
        )
    return grid


def write(folder: Path, figures: Sequence[Figure], origin: dict[str, str]) -> None:
    """Keeps the last full run, for programs and for readers."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{**asdict(figure), "verdict": figure.verdict} for figure in figures]
    text = json.dumps({**origin, "figures": rows}, indent=2, ensure_ascii=False)
    (folder / "bench.json").write_text(text + "\n")
    (folder / "bench.md").write_text(markdown(figures, origin))


def markdown(figures: Sequence[Figure], origin: dict[str, str]) -> str:
    lines = [
        "# Last full run of the benchmarks",
        "",
        f"Written by `make bench` on {origin['date']}, commit {origin['commit']},",
        f"{origin['machine']}.",
        "",
        "| figure | value | unit | bounds | verdict | note |",
        "|---|---:|---|---:|---|---|",
    ]
    lines += [
        f"| {figure.name} | {shown(figure.value)} | {figure.unit} "
        f"| {figure.bounds} | {figure.verdict} | {figure.note} |"
        for figure in figures
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
