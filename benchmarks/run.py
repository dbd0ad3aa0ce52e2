"""Runs the benchmarks, prints one table, keeps it in docs/results, and exits 1 when
a figure breaks its bounds. `python -m benchmarks.run NAME ...` runs only those named,
`--full` takes the large sizes.
"""

import argparse
import datetime
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from math import isnan
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import http_chart
from benchmarks.figure import Figure, shown
from headway import compiled
from headway.compiled.build import CannotCompile, build
from tools import provenance

MODULES = (
    "core_scale",
    "simulator",
    "timers",
    "owner",
    "http",
    "worker",
    "postgres",
    "cluster",
    "cluster_scale",
    "dashboard",
)
"""Modules of this folder, each with `run() -> list[Figure]`."""
NAMED = ("backlog", "idle", "spark")
"""Those that run only when they are named: they take long."""

RESULTS = Path("docs/results")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=", ".join(MODULES + NAMED)
    )
    parser.add_argument("--full", action="store_true", help="the large sizes")
    parser.add_argument("--figures", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(MODULES + NAMED)
    if unknown:
        sys.exit(f"no such benchmark: {', '.join(sorted(unknown))}")
    if options.full:
        os.environ["BENCH_FULL"] = "1"
    if options.figures:
        print(json.dumps([asdict(x) for name in options.names for x in figures(name)]))
        return 0
    return report(options.names)


def report(names: Sequence[str]) -> int:
    """Measures, prints, and keeps the result if all were measured."""
    core = compile_first()
    found = [figure for name in names or MODULES for figure in measure(name)]
    origin = {
        "date": str(datetime.datetime.now(datetime.UTC).date()),  # noqa: TID251
        "commit": provenance.commit(),
        "machine": f"{provenance.machine()}, core {core}",
    }
    # In a log, lines may be as long as the notes.
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(table(found, origin))
    if not names:
        write(RESULTS, found, origin)
    draw(RESULTS, found, origin)
    bad = [figure.name for figure in found if not figure.is_good]
    if bad:
        console.print(f"out of bounds: {', '.join(bad)}", style="bold red")
    return 1 if bad else 0


def compile_first() -> str:
    """Measured is what somebody who cares for speed would run; says which it is."""
    place = compiled.folder()
    if place is None:
        return "interpreted"
    if compiled.is_fresh(place):
        return "compiled"
    try:
        build(place, lambda text: print(f"compiling {text} ...", file=sys.stderr))
    except CannotCompile as error:
        print(f"interpreted: {error}", file=sys.stderr)
        return "interpreted"
    return "compiled"


def measure(name: str) -> list[Figure]:
    """In a process of its own, so that no module works in the memory of another."""
    print(f"measuring {name} ...", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "benchmarks.run", "--figures", name]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [Figure(**row) for row in json.loads(answer.stdout)]


def figures(name: str) -> list[Figure]:
    found: list[Figure] = importlib.import_module(f"benchmarks.{name}").run()
    return found


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
    rows = [
        # JSON has no word for a number that was not measured but null.
        {
            **asdict(figure),
            "value": None if isnan(figure.value) else figure.value,
            "verdict": figure.verdict,
        }
        for figure in figures
    ]
    text = json.dumps({**origin, "figures": rows}, indent=2, ensure_ascii=False)
    (folder / "bench.json").write_text(text + "\n")
    (folder / "bench.md").write_text(markdown(figures, origin))


def draw(folder: Path, figures: Sequence[Figure], origin: dict[str, str]) -> None:
    """The picture of the server and its peers, whenever they were measured."""
    if http_chart.is_drawable(figures):
        (folder / "http.svg").write_text(http_chart.draw(figures, origin))


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
