"""The process of a throttler, as its owner sees it: started, asked, killed."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

import msgspec

from headway.throttling.messages import Batch, Frames, Hello, Ready, Told, framed

LOAD_S: Final = 30.0
"""How long its module may take to be imported."""
RECEIVED: Final = 1 << 16
LINE_MAX: Final = 1_000
PRINTED: Final = 1 << 16
DROP_S: Final = 0.01
"""Where it prints more than anybody wants to hear, the rest of so much is dropped, with a
pause: to read it must not take the time of those who decide."""
ENDED: Final = "ended"
NOT_LOADED: Final = "not loaded"
TOO_SLOW: Final = "too slow"
T = TypeVar("T", bound=msgspec.Struct)


class Lost(Exception):
    """The process is of no more use, and was killed."""

    def __init__(self, error: str, text: str) -> None:
        super().__init__(text)
        self.error = error
        """What it was, of a few."""


class Child:
    """One process; whatever goes wrong with it, it is killed and Lost is raised."""

    def __init__(self, queue: str, place: str, heard: Callable[[str], bool]) -> None:
        """`heard` gets the lines that it prints, in a thread of their own, and says
        whether it wants more of them.
        """
        self._frames = Frames()
        self._socket, theirs = socket.socketpair()
        with theirs:
            # In a session of its own: a Ctrl-C at the terminal is for the server.
            self._process = subprocess.Popen(  # noqa: S603  # our own program
                (sys.executable, "-m", "headway.throttling", queue, place),
                stdin=theirs.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )
        self._turn = threading.Lock()
        self._is_killed = False
        self._listening = threading.Thread(
            target=self._listen, args=(heard,), name="headway-throttler-output"
        )
        self._listening.daemon = True
        self._listening.start()

    def load(self) -> None:
        """Waits until it has imported its function; Lost says why it can't."""
        until_s = time.monotonic() + LOAD_S
        try:
            self._send(Hello([entry for entry in sys.path if entry]), until_s)
            ready = self._receive(Ready, until_s, "to be imported", LOAD_S)
        except Lost as lost:
            raise Lost(NOT_LOADED, str(lost)) from lost
        if ready.error:
            self.kill()
            raise Lost(NOT_LOADED, ready.error)

    def ask(self, batch: Batch, limit_s: float) -> None:
        self._send(batch, time.monotonic() + limit_s)

    def hear(self, limit_s: float) -> Told:
        """The verdict on the next job."""
        until_s = time.monotonic() + limit_s
        return self._receive(Told, until_s, "for one verdict", limit_s)

    def kill(self) -> None:
        """With all that it has started. May be called by another thread, and again."""
        with self._turn:
            if self._is_killed:
                return
            self._is_killed = True
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        # Whoever waits for a verdict is woken by that.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Only by the one who asks it: nobody waits for a verdict any more."""
        self.kill()
        self._socket.close()
        self._listening.join()

    def _send(self, message: msgspec.Struct, until_s: float) -> None:
        try:
            self._socket.settimeout(max(0.001, until_s - time.monotonic()))
            self._socket.sendall(framed(message))
        except TimeoutError as error:
            self.kill()
            raise Lost(TOO_SLOW, "its process reads nothing; it was killed") from error
        except OSError as error:
            raise self._ended() from error

    def _receive(self, kind: type[T], until_s: float, what: str, limit_s: float) -> T:
        try:
            while (message := self._frames.next(kind)) is None:
                self._socket.settimeout(max(0.001, until_s - time.monotonic()))
                more = self._socket.recv(RECEIVED)
                if not more:
                    raise self._ended()
                self._frames.feed(more)
        except TimeoutError as error:
            self.kill()
            text = f"it took longer than {limit_s:g} s {what}; its process was killed"
            raise Lost(TOO_SLOW, text) from error
        except msgspec.MsgspecError as error:
            self.kill()
            raise Lost(ENDED, "its process sent what is no verdict") from error
        except OSError as error:
            raise self._ended() from error
        return message

    def _ended(self) -> Lost:
        # It has hung up, and is about to end: how, only the system can say.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        code = self._process.poll()
        self.kill()
        if code is None:
            return Lost(ENDED, "its process has hung up; it was killed")
        if code < 0:
            name = signal.Signals(-code).name
            return Lost(ENDED, f"its process was ended by {name}")
        return Lost(ENDED, f"its process ended with status {code}")

    def _listen(self, heard: Callable[[str], bool]) -> None:
        assert self._process.stdout is not None
        rest = b""
        with self._process.stdout as stdout:
            while more := os.read(stdout.fileno(), PRINTED):
                *lines, rest = (rest + more).split(b"\n")
                if len(rest) > LINE_MAX:
                    lines, rest = [*lines, rest], b""
                if not all(heard(_text(line)) for line in lines):
                    time.sleep(DROP_S)
        heard(_text(rest))


def _text(line: bytes) -> str:
    return line[:LINE_MAX].decode("utf-8", "replace").strip()
