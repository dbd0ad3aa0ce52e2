"""`python -m tests.faults.crash 1000`: so many kills, and what came of them."""

import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.faults.crash.trial import Figures, Trial

KILLS_EACH = 25
"""On one file: it grows, and all of it is checked after every kill."""

FAULTS_SHOWN = 50


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def main(kills: int, seed: int) -> int:
    """Two trials at a time, as there are cores; answers the exit status."""
    total, faults = Figures(), list[str]()
    turn = threading.Lock()
    seen = 0

    def note() -> None:
        nonlocal seen
        with turn:
            seen += 1
            if seen % 5 == 0 or seen == kills:
                say(f"\r{seen:,} of {kills:,} kills")

    def run(number: int) -> None:
        with tempfile.TemporaryDirectory() as directory:
            trial = Trial(Path(directory) / "jobs.db", seed + number)
            trial.run(min(KILLS_EACH, kills - number * KILLS_EACH), note)
        with turn:
            total.add(trial.figures())
            faults.extend(f"seed {seed + number}: {f}" for f in trial.account.faults)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, range(-(-kills // KILLS_EACH))))
    figures = [f"{name:>14} {value:>10,}" for name, value in vars(total).items()]
    closing = f"{len(faults)} faults" if faults else "nothing lost, nothing unexpected"
    say("\n".join(["", *figures, *faults[:FAULTS_SHOWN], closing, ""]))
    return 1 if faults else 0


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    sys.exit(main(count, int(sys.argv[2]) if len(sys.argv) > 2 else 1))
