"""The processes: nodes with their links, over one PostgreSQL."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.cluster.chaos.asking import Asker
from tests.cluster.chaos.relay import Link, Relays
from tests.endtoend.processes import ROOT, free_port
from tests.postgres.cluster import Cluster as Postgres

LEASE: Final = "2s"
PARTITIONS: Final = "6"
START_S: Final = 90.0
STOP_S: Final = 90.0
_never: Final = threading.Event()


class Node:
    """`headway serve --node`, over several lives, behind three links."""

    def __init__(
        self, name: str, folder: Path, relays: Relays, database: Postgres
    ) -> None:
        self.name = name
        self.port = free_port()
        self.to_database = relays.link(database.port)
        self.to_peers = relays.link(self.port)
        """Where the other nodes find it."""
        self.to_clients = relays.link(self.port)
        self.deaths: list[str] = []
        """Ends that nobody has asked for."""
        self._folder = folder
        self._data = folder / name
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._since = 0
        """Where the log of this life begins."""

    @property
    def links(self) -> dict[str, Link]:
        return {
            "database": self.to_database,
            "peers": self.to_peers,
            "clients": self.to_clients,
        }

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def arguments(self) -> list[str]:
        return [
            *("--node", self.name, "--lease", LEASE, "--partitions", PARTITIONS),
            *("--advertise", f"http://127.0.0.1:{self.to_peers.port}"),
        ]

    def environment(self) -> dict[str, str]:
        return {}

    def spawn(self) -> None:
        """Starts it, unless it lives."""
        if self.is_alive:
            return
        self.look()
        found = os.environ.get("PYTHONPATH", "")
        place = f"postgresql://postgres@127.0.0.1:{self.to_database.port}/postgres"
        command = [sys.executable, "-m", "headway.cli.main", "serve"]
        self._since = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(*command, "--data", str(self._data), "--port", str(self.port)),
                    *self.arguments(),
                ],
                cwd=ROOT,
                env={
                    **os.environ,
                    "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}:{found}",
                    "HEADWAY_STORE": place,
                    **self.environment(),
                },
                stdout=log,
                stderr=log,
            )

    def look(self) -> None:
        """Notes an end that nobody has asked for."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            self._process = process
        elif not self._is_refused():
            self.deaths.append(f"{self.name} ended with {process.returncode}")

    def _is_refused(self) -> bool:
        """Whether it said that it can't begin without its database."""
        life = self._log.read_bytes()[self._since :]
        return b"headway: " in life and b" listens on " not in life

    def kill(self) -> None:
        self.look()
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(STOP_S)

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def ended(self) -> int | None:
        """How it ended after it was asked to; None if it has not."""
        if self._process is None:
            return 0
        code = self._process.poll()
        if code is not None:
            self._process = None
        return code

    def terminate(self) -> int:
        """Asks it to stop, and tells how it ended."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_S)
            return -1

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_S)
            self._process = None

    def answers(self) -> None:
        """Waits until it is ready; it is started again if it ends before."""
        asker = Asker({self.name: self.port})
        until_s = time.monotonic() + START_S
        while asker.ask(self.name, "GET", "/readyz").outcome != "ok":
            if not self.is_alive:
                self.spawn()
            if time.monotonic() > until_s:
                raise AssertionError(f"{self.name} does not answer: {self.log()}")
            _never.wait(0.02)
        asker.close()

    def log(self) -> str:
        """Its last words."""
        return self._log.read_text(errors="replace")[-3_000:]

    def tracebacks(self) -> list[str]:
        text = self._log.read_text(errors="replace")
        return [
            f"{self.name}: Traceback{part[:1_500]}"
            for part in text.split("Traceback")[1:]
        ]


class Nodes:
    """All nodes of a cluster: any of them can be asked anything."""

    kind: type[Node] = Node

    def __init__(
        self, names: Sequence[str], folder: Path, relays: Relays, database: Postgres
    ) -> None:
        self.all = {name: self.kind(name, folder, relays, database) for name in names}
        self.queues: list[str] = []

    def nodes(self) -> Sequence[str]:
        return list(self.all)

    def nodes_of(self, queue: str) -> Sequence[str]:
        return list(self.all)

    def nodes_of_job(self, job: str) -> Sequence[str]:
        return list(self.all)

    def queues_at(self, node: str) -> Sequence[str]:
        return self.queues

    def ports(self) -> dict[str, int]:
        return {name: node.to_clients.port for name, node in self.all.items()}
