"""Time buckets against a heap and a sorted map: load, remove a tenth, drain.

Each structure runs in a process of its own, so that its memory can be seen. In `make
bench` there are a million entries, with BENCH_FULL=1 and on the command line 10 million.
"""

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import time
from array import array
from collections.abc import Callable
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, Protocol

from benchmarks.figure import Figure
from headway.core.timers import TimeBuckets

ENTRIES = 1_000_000
FULL_ENTRIES = 10_000_000
REPETITIONS = 3
FLOORS = {
    ("heapq, lazy", "drain s"): 2.0,
    ("heapq, lazy", "total s"): 1.0,
    ("SortedDict", "total s"): 1.0,
}
"""How many times the time of TimeBuckets each must take at least."""

SPAN_MS = 3_600_000
STEP_MS = 100
SEED = 20_251_115


class Timers(Protocol):
    """What is measured."""

    def add(self, key: int, at_ms: int) -> int: ...
    def remove(self, key: int, at_ms: int, place: int) -> bool: ...
    def pop_due(self, now_ms: int) -> list[int]: ...


class LazyHeap:
    """One heap of everything; removed entries stay until they come up."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._times: dict[int, int] = {}

    def add(self, key: int, at_ms: int) -> int:
        self._times[key] = at_ms
        heappush(self._heap, (at_ms, key))
        return key

    def remove(self, key: int, at_ms: int, place: int) -> bool:
        return self._times.pop(key, None) is not None

    def pop_due(self, now_ms: int) -> list[int]:
        heap, times = self._heap, self._times
        due: list[int] = []
        while heap and heap[0][0] <= now_ms:
            at_ms, key = heappop(heap)
            if times.get(key) == at_ms:
                del times[key]
                due.append(key)
        return due


class SortedMap:
    """A sorted map from (time, key), the nearest thing to a B-tree."""

    def __init__(self) -> None:
        from sortedcontainers import SortedDict  # type: ignore[import-untyped]

        self._map: Any = SortedDict()

    def add(self, key: int, at_ms: int) -> int:
        self._map[(at_ms, key)] = None
        return key

    def remove(self, key: int, at_ms: int, place: int) -> bool:
        return self._map.pop((at_ms, key), self) is None

    def pop_due(self, now_ms: int) -> list[int]:
        entries = self._map
        due: list[int] = []
        while entries and entries.keys()[0][0] <= now_ms:
            (_, key), _ = entries.popitem(0)
            due.append(key)
        return due


STRUCTURES: dict[str, Callable[[], Timers]] = {
    "TimeBuckets": TimeBuckets[int],
    "heapq, lazy": LazyHeap,
    "SortedDict": SortedMap,
}


def resident_bytes() -> int:
    """Memory of this process, as Linux counts it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1_024
    raise RuntimeError("no VmRSS in /proc/self/status")


def measure(name: str, entries: int) -> dict[str, float]:
    """Runs one structure through its life, checking what it gives back."""
    chance = random.Random(SEED)
    times = array("q", (chance.randrange(SPAN_MS) for _ in range(entries)))
    removed = array("q", chance.sample(range(entries), entries // 10))
    keys = list(range(entries))  # objects that are there already, as jobs are
    places = array("q", bytes(8 * entries))
    timers = STRUCTURES[name]()
    before_bytes = resident_bytes()

    started = time.perf_counter()
    for key, at_ms in zip(keys, times, strict=True):
        places[key] = timers.add(key, at_ms)
    loaded = time.perf_counter()
    used_bytes = resident_bytes() - before_bytes
    progress(name, "loaded")

    unloaded = time.perf_counter()
    for key in removed:
        assert timers.remove(keys[key], times[key], places[key])
    thinned = time.perf_counter()
    progress(name, "thinned")

    drained = time.perf_counter()
    fired = 0
    for now_ms in range(0, SPAN_MS + STEP_MS, STEP_MS):
        fired += len(timers.pop_due(now_ms))
    ended = time.perf_counter()
    assert fired == entries - len(removed), f"{name} fired {fired}"
    return {
        "load s": loaded - started,
        "remove s": thinned - unloaded,
        "drain s": ended - drained,
        "bytes each": used_bytes / entries,
    }


def progress(name: str, step: str) -> None:
    print(f"  {name}: {step}", file=sys.stderr, flush=True)


def in_own_process(name: str, entries: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.timers"]
    command += ["--entries", str(entries), "--only", name]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, float] = json.loads(answer.stdout)
    return figures


def best_of(name: str, entries: int, repetitions: int) -> dict[str, float]:
    """The best of some runs, column by column, and what a whole life costs."""
    runs = [in_own_process(name, entries) for _ in range(repetitions)]
    best = {column: min(run[column] for run in runs) for column in runs[0]}
    best["total s"] = sum(best[column] for column in ("load s", "remove s", "drain s"))
    return best


def run() -> list[Figure]:
    """Ratios to TimeBuckets in the same run: above 1 means that it is faster."""
    is_full = bool(os.environ.get("BENCH_FULL"))
    entries = FULL_ENTRIES if is_full else ENTRIES
    repetitions = 1 if is_full else REPETITIONS
    results = {name: best_of(name, entries, repetitions) for name in STRUCTURES}
    ours = results["TimeBuckets"]
    note = f"{entries:,} entries, best of {repetitions}, seed {SEED}"
    figures = [Figure("timers, whole life", ours["total s"], "s", note=note)]
    for name in ("heapq, lazy", "SortedDict"):
        for column in ("drain s", "total s", "bytes each"):
            theirs, own = results[name][column], ours[column]
            figures.append(
                Figure(
                    f"timers, {name}: {column.removesuffix(' s')}",
                    theirs / own,
                    "x TimeBuckets",
                    floor=FLOORS.get((name, column)),
                    note=f"{theirs:.2f} against {own:.2f}",
                )
            )
    return figures


def print_table(results: dict[str, dict[str, float]]) -> None:
    """Figures, and in brackets how many times those of the first row."""
    first = next(iter(results.values()))
    print(f"{'':14}" + "".join(f"{column:>18}" for column in first))
    for name, figures in results.items():
        cells = (
            f"{value:,.2f} ({value / first[column]:.1f})"
            for column, value in figures.items()
        )
        print(f"{name:14}" + "".join(f"{cell:>18}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=FULL_ENTRIES)
    parser.add_argument("--only", choices=STRUCTURES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options.only, options.entries)))
        return
    print(
        f"{options.entries:,} entries over {SPAN_MS // 60_000} min, popped every "
        f"{STEP_MS} ms; a tenth removed; seed {SEED}; Python "
        f"{platform.python_version()}, {platform.machine()}"
    )
    print_table({name: best_of(name, options.entries, 1) for name in STRUCTURES})


if __name__ == "__main__":
    main()
