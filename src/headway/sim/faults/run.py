"""Many seeds, one after the other: counts, the first failures, and an exit code."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from headway.sim.faults.verdict import NAMES, Result
from headway.sim.faults.world import run_seed

SHOWN_MAX: Final = 3
"""Failing seeds that are told in full."""


def main(arguments: Sequence[str]) -> int:
    """0: all is well; 1: an exception of ours; 2: liveness; 3: correctness."""
    options = _parser().parse_args(arguments)
    results: list[Result] = []
    counts: Counter[str] = Counter()
    for seed in _seeds(options):
        result = run_seed(seed)
        counts += result.counts
        if result.code:
            results.append(result)
            if len(results) <= SHOWN_MAX:
                _write(told(result))
        elif not options.quiet:
            _write(f"seed {seed}: ok {result.digest}")
        counts["seeds"] += 1
    if not options.quiet or results:
        _write(*(f"{count:>9} {name}" for name, count in sorted(counts.items())))
    if results:
        failing = ", ".join(str(result.seed) for result in results[:20])
        _write(f"{len(results)} of {counts['seeds']} seeds failed: {failing}")
    else:
        _write(f"{counts['seeds']} seeds: ok")
    return max((result.code for result in results), default=0)


def told(result: Result) -> str:
    """A failure, and how to see it again."""
    return "\n".join(
        [
            f"seed {result.seed}: {NAMES[result.code]}: {result.text}",
            "the last events:",
            *result.trace,
            f"again: python -m headway.sim.faults 1 --seed {result.seed}",
        ]
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m headway.sim.faults")
    parser.add_argument(
        "count", type=int, nargs="?", default=100, help="how many seeds"
    )
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--seeds", metavar="A:B", help="from A up to, without, B")
    parser.add_argument("--quiet", action="store_true", help="only failures")
    return parser


def _seeds(options: argparse.Namespace) -> Iterable[int]:
    if options.seeds:
        first, _, end = options.seeds.partition(":")
        return range(int(first), int(end))
    return range(options.seed, options.seed + options.count)


def _write(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
