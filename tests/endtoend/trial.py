"""One run: load from all sides, kills in turn, a drain, and a full account."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.endtoend.account import Account, read
from tests.endtoend.asking import Asker, pause
from tests.endtoend.clients import PRODUCERS, Intake, Operator, Producer
from tests.endtoend.plan import Plan
from tests.endtoend.processes import ROOT, STOP_S, Crew, Probe, Server, now_ms
from tests.endtoend.told import Told

LIVE: Final = ("ready", "scheduled", "leased", "waiting")
POLLS: Final = 3
"""Long polls that wait when the server is told to stop."""
SHOWN: Final = 10
WHY_S: Final = 30.0
"""How long jobs that are left are looked for, where a run has failed already."""


@dataclass(frozen=True)
class Size:
    jobs: int
    kills: int
    gap_s: tuple[float, float] = (1.0, 3.0)
    """Between a start that has answered and the next kill."""
    drain_s: float = 240.0
    """The longest that what is left may take."""


class Trial:
    """Server, workers, producers, an operator and a killer on one folder."""

    def __init__(self, folder: Path, size: Size, seed: int, *options: str) -> None:
        """`options` are the server's."""
        self.size = size
        self.plan = Plan(seed, size.jobs)
        self.told = Told(opens_ms=self.plan.opens_ms)
        self.account: Account | None = None
        """Once the run is over."""
        self.server = Server(folder, self.told, *options)
        self.server_kills = 0
        self.worker_kills = 0
        self.own_deaths = 0
        self.stalls_ms = 0
        self.seconds = 0.0
        self._folder = folder
        self._intake = Intake(self.plan, size.kills, sum(size.gap_s) / 2)
        self._operator = Operator(self.plan, self.told)
        self._broken: list[BaseException] = []

    def run(self) -> list[str]:
        """All that is wrong."""
        began_s = time.monotonic()
        probe = Probe(self._folder, self.told)
        self.server.spawn()
        crew: Crew | None = None
        try:
            self.server.answers()
            asker = Asker(self.server.port)
            self._operator.prepare(asker)
            crew = Crew(self._folder, self.server.port, self.told)
            self._under_load(crew)
            self._drain(asker, crew)
            crew.close()
            asker.close()
            self.server.terminate()
        finally:
            if crew is not None:
                crew.close()
            self.server.close()
            probe.close()
        self.stalls_ms = probe.stalls_ms
        self.own_deaths = crew.own_deaths
        crew.hear()
        self.seconds = time.monotonic() - began_s
        return self._faults()

    @property
    def kills(self) -> int:
        return self.server_kills + self.worker_kills

    def figures(self) -> dict[str, object]:
        """What is worth knowing of the run."""
        account, starts = self.account, sorted(self.server.starts_ms)
        assert account is not None
        return {
            "jobs": len(account.replayed.records),
            **{f"  {end}": count for end, count in account.outcomes()},
            "ticks": account.kinds["tick"],
            "redriven": account.kinds["redrive"],
            "redeliveries": account.redelivered,
            "leases lost": account.kinds["lose"],
            "waits / replies": f"{account.kinds['wait']} / {account.kinds['reply']}",
            "repeated asks of producers": self.told.repeats,
            "jobs known by their keys": self.told.recovered,
            "kills of the server": self.server_kills,
            "kills of workers": self.worker_kills,
            "workers that died by themselves": self.own_deaths,
            "events in history": account.events,
            "end of a lease to its notice, longest ms": account.notices.longest_ms,
            "death of a worker to its notice, longest ms": account.noticed_ms,
            "starts of the server": len(starts),
            "start to first answer, median ms": starts[len(starts) // 2],
            "start to first answer, longest ms": starts[-1],
            "the machine stood still, ms": self.stalls_ms,
            "seconds": round(self.seconds, 1),
        }

    def _under_load(self, crew: Crew) -> None:
        port = self.server.port
        producing = [
            self._thread(self._producer().run, port, f"p{number}")
            for number in range(PRODUCERS)
        ]
        operating = self._thread(self._operator.run, port)
        self._kill(crew)
        for thread in producing:
            self._join(thread, self.size.drain_s, crew)
        self._operator.stop()
        self._join(operating, self.size.drain_s, crew)

    def _producer(self) -> Producer:
        return Producer(self.plan, self._intake, self.told, self._operator.doomed)

    def _kill(self, crew: Crew) -> None:
        """A worker, then the server, in turn; once the server is asked to stop."""
        chance = self.plan.chance("killer")
        while self.kills < self.size.kills:
            self._idle(chance.uniform(*self.size.gap_s), crew)
            if self.worker_kills <= self.server_kills:
                crew.kill_one(chance)
                self.worker_kills += 1
            else:
                self.server.kill()
                self.server_kills += 1
                self.server.spawn()
                if chance.random() < 0.2:
                    # Once more, before it has said a word or just after.
                    pause(chance.uniform(0, 0.4))
                    self.server.kill()
                    self.server.spawn()
                self.server.answers()
            if self.kills == self.size.kills // 2:
                self._stop_politely()
            self._intake.killed()

    def _stop_politely(self) -> None:
        """Whoever waits for a job is answered or cut off, and does not hang."""
        started = threading.Barrier(POLLS + 1)
        body = json.dumps({"queues": ["empty"], "wait": 60_000}).encode()

        def poll() -> None:
            asker = Asker(self.server.port)
            asker.ask_once("GET", "/livez", b"")
            started.wait()
            asker.ask_once("POST", "/v1/lease", body)
            asker.close()
            if asker.timeouts:
                self.told.strange.append("a long poll hangs though the server stops")

        polls = [self._thread(poll) for _ in range(POLLS)]
        started.wait()
        pause(0.2)
        self.server.terminate()
        for thread in polls:
            thread.join(STOP_S)
        self.server.spawn()
        self.server.answers()

    def _drain(self, asker: Asker, crew: Crew) -> None:
        self._operator.put_in_order(asker)
        until_s = time.monotonic() + self.size.drain_s
        while time.monotonic() < until_s:
            self._idle(0.05, crew)
            if not self._left(asker):
                return
        left = self._left(asker)
        self.told.strange.append(f"invariant 29: not drained: {left}")
        self.told.strange += self._why(asker)

    def _left(self, asker: Asker) -> dict[str, Any]:
        """What is not at its end: counts by queue, and operations under way."""
        _, page = asker.ask("GET", "/v1/queues?limit=1000")
        left: dict[str, Any] = {
            one["name"]: one["counts"]
            for one in page["queues"]
            if any(one["counts"][state] for state in LIVE)
        }
        _, found = asker.ask("GET", "/v1/operations")
        running = [one for one in found["operations"] if one["ended_ms"] is None]
        if running:
            left["operations"] = running
        return left

    def _why(self, asker: Asker) -> list[str]:
        """Why the first jobs that are left are not running."""
        told: list[str] = []
        until_s = time.monotonic() + WHY_S
        for seq in sorted(self.told.accepted.values(), reverse=True):
            status, why = asker.ask("GET", f"/v1/jobs/p1_{seq}/why")
            if status == 200 and why["state"] in LIVE:
                told.append(f"left: {why}")
            if len(told) == SHOWN or time.monotonic() > until_s:
                break
        return told

    def _faults(self) -> list[str]:
        command = [sys.executable, "-m", "headway.cli.main", "verify"]
        verified = subprocess.run(
            [*command, str(self.server.store)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        faults = self.told.strange
        if verified.returncode != 0:
            faults.append(f"verify: {verified.stdout[-2_000:]}{verified.stderr[-500:]}")
        for name in ("server.log", "workers.log"):
            log = (self._folder / name).read_text(errors="replace")
            if "Traceback" in log:
                faults.append(f"{name}: {log[log.index('Traceback') :][:2_000]}")
        faults += [f"a thread has ended: {error!r}" for error in self._broken]
        self.account = Account(self.told)
        return self.account.check(read(self.server.store))

    def _thread(self, work: Callable[..., None], *args: object) -> threading.Thread:
        def run() -> None:
            try:
                work(*args)
            except Exception as error:
                self._broken.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def _join(self, thread: threading.Thread, longest_s: float, crew: Crew) -> None:
        until_s = time.monotonic() + longest_s
        while thread.is_alive() and time.monotonic() < until_s:
            crew.look_after()
            thread.join(0.05)
        if thread.is_alive():
            self.told.strange.append(f"a client has not ended by {now_ms()}")

    def _idle(self, seconds: float, crew: Crew) -> None:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            crew.look_after()
            pause(min(0.05, seconds))
