"""`python -m tests.endtoend 100000`: a run of so many jobs, and what came of it."""

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.endtoend.trial import Size, Trial

JOBS_EACH_KILL = 1_600
KILLS_MIN = 8
FAULTS_SHOWN = 30


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.endtoend")
    parser.add_argument("jobs", type=int, nargs="?", default=3_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, help="as many as the jobs ask for")
    parser.add_argument(
        "--apart", action="store_true", help="as `headway serve` has it"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep what is left")
    given = parser.parse_args()
    # Whoever ends it early ends its processes, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    kills = given.kills or max(KILLS_MIN, -(-given.jobs // JOBS_EACH_KILL))
    with tempfile.TemporaryDirectory() as folder:
        kept = given.keep or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        if any(kept.iterdir()):
            parser.error(f"{kept} is not empty")
        options = ["--apart"] if given.apart else []
        trial = Trial(kept, Size(given.jobs, kills), given.seed, *options)
        faults = trial.run()
        lines = [f"{name:<44} {value!s:>12}" for name, value in trial.figures().items()]
        closing = f"{len(faults)} faults" if faults else "everything is accounted for"
        sys.stdout.write("\n".join([*lines, *faults[:FAULTS_SHOWN], closing, ""]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
