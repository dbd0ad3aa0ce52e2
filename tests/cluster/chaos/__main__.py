"""`python -m tests.cluster.chaos 600 --seed 1`: so many seconds of faults, a verdict."""

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.cluster.chaos.result import RESULT, report
from tests.cluster.chaos.trial import Trial

FAULTS_SHOWN = 30


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.chaos")
    parser.add_argument("seconds", type=float, nargs="?", default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument(
        "--apart", action="store_true", help="servers of one partition, no cluster"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep what is left")
    parser.add_argument("--result", action="store_true", help=f"write {RESULT}")
    given = parser.parse_args()
    # Whoever ends it early ends its processes, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as folder:
        kept = given.keep or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        trial = Trial(kept, given.seed, nodes=given.nodes, is_cluster=not given.apart)
        faults = trial.run(given.seconds)
        figures = trial.figures()
    lines = [f"{name:<36} {value!s:>10}" for name, value in figures.items()]
    closing = f"{len(faults)} faults" if faults else "everything is accounted for"
    sys.stdout.write("\n".join([*lines, *faults[:FAULTS_SHOWN], closing, ""]))
    if given.result:
        RESULT.write_text(report(given.seed, given.seconds, figures, faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
