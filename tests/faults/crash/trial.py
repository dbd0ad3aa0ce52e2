"""One file, many killed processes, and the account of all that they said."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from headway.runtime.owner import Owner
from headway.runtime.verify import problems
from headway.store.sqlite.store import SqliteStore
from tests.faults.crash.account import Account
from tests.faults.crash.drain import drain
from tests.faults.crash.jobs import LONG_MS, SHORT_MS
from tests.faults.crash.load import Told

ROOT: Final = Path(__file__).parents[3]
LINES_MAX: Final = 300
"""A process tells so many lines at most before it is killed."""


@dataclass
class Figures:
    """What a trial came to."""

    kills: int = 0
    jobs: int = 0
    acknowledged: int = 0
    done: int = 0
    recovered: int = 0
    redelivered: int = 0

    def add(self, other: "Figures") -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


class Trial:
    """Kills processes that work on one file, and keeps account."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.account = Account()
        self.kills = 0
        self._seed = seed
        self._chance = Random(seed)

    def run(self, kills: int, progress: Callable[[], object] = lambda: None) -> None:
        """Ends with everything drained; the account's faults say what was wrong."""
        for _ in range(kills):
            self.kill_one()
            for problem in problems(self.path) if self.path.exists() else ():
                self.account.faults.append(f"after kill {self.kills}: {problem}")
            progress()
        self.drain()
        self.account.check_drained()

    def kill_one(self) -> None:
        """A process works until it has told a number of lines that chance has drawn."""
        account = self.account
        lines = self._chance.choice([2, 30, LINES_MAX, LINES_MAX])
        lines = self._chance.randint(1, lines)
        is_short = self._chance.random() < 0.3
        told = Told(
            seed=self._seed * 100_000 + self.kills,
            leases_ms=[SHORT_MS] if is_short else [LONG_MS, LONG_MS, SHORT_MS],
            again=account.unknown_keyed()[:40],
            held=account.long_held()[:10],
        )
        for line in killed(self.path, told, lines):
            account.hear(line)
        account.end_life()
        self.kills += 1

    def drain(self) -> None:
        """Delivers all that is left."""
        store = SqliteStore(self.path)
        owner = Owner(store)
        now_ms = owner.take_over().now_ms()
        try:
            drain(owner, store, self.account, now_ms)
        finally:
            owner.close()

    def figures(self) -> Figures:
        account = self.account
        return Figures(
            self.kills,
            len(account.attempted),
            len(account.acknowledged),
            len(account.done),
            len(account.recovered),
            account.redelivered,
        )


def killed(path: Path, told: Told, lines: int) -> Iterator[str]:
    """What a process says that is killed after so many lines, to the last one."""
    command = [sys.executable, "-m", "tests.faults.crash.load", str(path)]
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    with child:
        child.stdin.write(json.dumps(told) + "\n")
        child.stdin.flush()
        for number, line in enumerate(child.stdout, 1):
            yield line.rstrip("\n")
            if number == lines:
                child.kill()
        assert child.wait() == -signal.SIGKILL, child.stderr.read()
