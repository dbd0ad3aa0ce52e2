"""The real processes: a server that is started again and again, and its workers."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random
from typing import IO, Final

from tests.endtoend.asking import Asker, pause
from tests.endtoend.told import Told

ROOT: Final = Path(__file__).resolve().parents[2]
PORTS: Final = (15_000, 31_000)
"""Below those that the system gives to clients: one that asks for a server which is
down could be given its port, and meet itself there."""
START_S: Final = 60.0
STOP_S: Final = 60.0
PROBE_S: Final = 0.2
STALL_MS: Final = 1_500


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def free_port() -> int:
    """One that nobody listens on."""
    chance = Random()
    while True:
        port = chance.randrange(*PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def _environment() -> dict[str, str]:
    found = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}:{found}"}


class Server:
    """`headway serve` on one port and one folder, over several lives."""

    def __init__(self, folder: Path, told: Told, *options: str) -> None:
        self.data = folder / "data"
        self._options = options
        self.port = free_port()
        self.starts_ms: list[int] = []
        """How long each start took to the first answer."""
        self._log = (folder / "server.log").open("ab")
        self._told = told
        self._process: subprocess.Popen[bytes] | None = None
        self._began_ms = now_ms()
        self._down_ms = self._began_ms
        self._is_up = False

    @property
    def store(self) -> Path:
        return self.data / "headway.db"

    def spawn(self) -> None:
        self._began_ms = now_ms()
        command = [sys.executable, "-m", "headway.cli.main", "serve"]
        self._process = subprocess.Popen(
            [
                *(*command, *self._options),
                *("--data", str(self.data), "--port", str(self.port)),
            ],
            cwd=ROOT,
            env=_environment(),
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    def answers(self) -> None:
        """Waits for the first answer."""
        asker = Asker(self.port)
        until_s = time.monotonic() + START_S
        while True:
            answer = asker.ask_once("GET", "/readyz", b"")
            if answer is not None and answer[0] == 200:
                break
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > until_s:
                raise AssertionError(f"the server does not start: {self.log()}")
            pause(0.005)
        asker.close()
        at_ms = now_ms()
        self.starts_ms.append(at_ms - self._began_ms)
        self._told.down.append((self._down_ms, at_ms))
        self._is_up = True

    def kill(self) -> None:
        """In a life that has answered, or in one that has not yet."""
        assert self._process is not None
        if self._process.poll() is not None:
            code = self._process.returncode
            self._told.strange.append(f"the server ended by itself: {code}")
        self._went_down()
        self._process.kill()
        self._process.wait(STOP_S)

    def terminate(self) -> None:
        """Asks it to stop; it must end well."""
        assert self._process is not None
        self._went_down()
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._told.strange.append("the server does not stop")
            self.kill()
            return
        if code != 0:
            self._told.strange.append(f"the server ended with {code}: {self.log()}")

    def _went_down(self) -> None:
        if self._is_up:
            self._down_ms = now_ms()
            self._is_up = False

    def log(self) -> str:
        """Its last words."""
        return Path(self._log.name).read_text(errors="replace")[-2_000:]

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(STOP_S)
        self._log.close()


class Probe:
    """Notes when the machine itself stands still: nobody can notice anything then.

    It flushes a file of its own beside the store, which the server does not touch.
    """

    def __init__(self, folder: Path, told: Told) -> None:
        self.stalls_ms = 0
        self._path = folder / "probe"
        self._told = told
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._is_over.set()
        self._thread.join(STOP_S)

    def _serve(self) -> None:
        last_ms = now_ms()
        with self._path.open("wb", buffering=0) as file:
            while not self._is_over.wait(PROBE_S):
                file.write(b".")
                os.fdatasync(file.fileno())
                at_ms = now_ms()
                if at_ms - last_ms > STALL_MS:
                    self._told.down.append((last_ms, at_ms))
                    self.stalls_ms += at_ms - last_ms
                last_ms = at_ms


class Crew:
    """Worker processes; whichever dies is replaced, under another name."""

    def __init__(self, folder: Path, port: int, told: Told, size: int = 4) -> None:
        self._folder = folder
        self._port = port
        self._told = told
        self._log: IO[bytes] = (folder / "workers.log").open("ab")
        self._turn = threading.Lock()
        self._lives = 0
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.own_deaths = 0
        """Workers that have ended with jobs in hand, by themselves."""
        for place in range(size):
            self._spawn(place)

    def kill_one(self, chance: Random) -> None:
        with self._turn:
            name = chance.choice(sorted(self._processes))
            process = self._processes.pop(name)
            process.kill()
            process.wait(STOP_S)
            self._bury(name)

    def look_after(self) -> None:
        """Replaces those that have ended by themselves."""
        with self._turn:
            for name, process in list(self._processes.items()):
                if process.poll() is not None:
                    del self._processes[name]
                    self.own_deaths += 1
                    self._bury(name)

    def close(self) -> None:
        with self._turn:
            for process in self._processes.values():
                process.kill()
            for process in self._processes.values():
                process.wait(STOP_S)
            self._processes.clear()
        self._log.close()

    def hear(self) -> None:
        """All that the workers have written down."""
        for path in sorted(self._folder.glob("*.journal")):
            self._told.hear(path.read_text().splitlines())

    def _bury(self, name: str) -> None:
        self._told.deaths[name] = now_ms()
        self._spawn(int(name.partition(".")[0].removeprefix("w")))

    def _spawn(self, place: int) -> None:
        self._lives += 1
        name = f"w{place}.{self._lives}"
        journal = self._folder / f"w{place}.journal"
        command = [sys.executable, "-m", "tests.endtoend.worker"]
        self._processes[name] = subprocess.Popen(
            [*command, str(self._port), name, str(journal)],
            cwd=ROOT,
            env=_environment(),
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
