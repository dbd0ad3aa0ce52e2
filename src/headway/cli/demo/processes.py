"""The demonstration's processes: started, listened to, and ended without a trace."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any, Final

from headway.cli.refused import Refused

READY_S: Final = 60.0
GRACE_S: Final = 12.0
LOG_SHOWN: Final = 300

Tell = Callable[[list[Any]], None]


class Child:
    """A process that reports in lines and ends when its standard input does."""

    def __init__(self, module: str, arguments: list[str], log: IO[bytes]) -> None:
        self.name = module
        self._process = subprocess.Popen(  # noqa: S603 our own modules
            [sys.executable, "-m", f"headway.cli.demo.{module}", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def listen(self, tell: Tell) -> None:
        """Calls `tell` with what it reports, in a thread of its own."""
        threading.Thread(target=self._listen, args=(tell,), daemon=True).start()

    def leave(self) -> None:
        """Lets it end in its own time."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def end(self, until_s: float) -> None:
        """Sees to it that it is gone, and its pipes with it."""
        self.leave()
        try:
            self._process.wait(max(0.1, until_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _listen(self, tell: Tell) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                tell(json.loads(line))
        tell(["over", self.name])


class Troupe:
    """All processes, in the order of their entrance; they leave in reverse."""

    def __init__(self, folder: Path) -> None:
        self._children: list[Child] = []
        self._path = folder / "demo.log"
        self._log = self._path.open("ab")

    def start(self, module: str, *arguments: object) -> Child:
        child = Child(module, [str(one) for one in arguments], self._log)
        self._children.append(child)
        return child

    def serve(self, folder: Path, ports: list[int]) -> str:
        """The address of a server on the first of the ports that is free."""
        said = ""
        for port in ports:
            told: SimpleQueue[list[Any]] = SimpleQueue()
            child = self.start("server", folder, port)
            child.listen(told.put)
            try:
                facts = told.get(timeout=READY_S)
            except Empty:
                raise Refused("the server does not answer") from None
            if facts[0] == "listens":
                return str(facts[1])
            said = str(facts[1])
            child.end(time.monotonic() + GRACE_S)
            self._children.remove(child)
        raise Refused(f"the server does not start: {said}; {self.last_words()}")

    def dismiss(self, name: str) -> None:
        """Lets those of this name leave before the others."""
        until_s = time.monotonic() + GRACE_S
        for child in [one for one in self._children if one.name == name]:
            child.end(until_s)
            self._children.remove(child)

    def check(self) -> None:
        """A process that is gone is the end of the demonstration."""
        for child in self._children:
            if not child.is_running:
                raise Refused(f"the {child.name} has ended: {self.last_words()}")

    def end(self) -> None:
        """Senders first, then workers, and the server when nobody asks it any more."""
        until_s = time.monotonic() + GRACE_S
        *others, server = reversed(self._children) if self._children else [None]
        for child in others:
            assert child is not None
            child.leave()
        for child in others:
            assert child is not None
            child.end(until_s)
        if server is not None:
            server.end(until_s)
        self._log.close()

    def last_words(self) -> str:
        """The end of what the processes have complained about."""
        lines = self._path.read_text(errors="replace").strip().splitlines()
        return lines[-1][:LOG_SHOWN] if lines else "it said nothing"
