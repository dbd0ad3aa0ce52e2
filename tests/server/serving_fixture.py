"""A real server in a process of its own, and a client that speaks in raw bytes."""

import contextlib
import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec

from headway.server.http.limits import Limits
from headway.server.serving import serve
from headway.server.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
"""How long a test waits for what has to come, however slow the machine is."""


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Serving:
    """The address of a running server, and a few words to say to it."""

    def __init__(self, address: str, process: "subprocess.Popen[str]") -> None:
        self.address = address
        self.process = process
        host, _, port = address.removeprefix("http://").partition(":")
        self.host = host
        self.port = int(port)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request on a connection of its own; a body that is no bytes goes as JSON."""
        sent = {"content-type": "application/json"} if body is not None else {}
        sent.update(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection = HTTPConnection(self.host, self.port, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())

    def raw(self, buffer: int = 0) -> "Raw":
        return Raw(self.host, self.port, buffer)


class Raw:
    """One connection, on which anything can be said."""

    def __init__(self, host: str, port: int, buffer: int = 0) -> None:
        self.socket = socket.socket()
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pending = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """A server that has hung up may not take it all."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)

    def half_close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def answer(self, method: str = "GET") -> Answer:
        """Reads one answer; what was sent behind it is kept for the next."""
        reading = _Reading(self.socket, self._pending)
        response = HTTPResponse(reading, method=method)  # type: ignore[arg-type]
        response.begin()
        body = response.read()
        self._pending = reading.rest()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, headers, body)

    def rest(self) -> bytes:
        """Everything until the server hangs up."""
        parts = [self._pending]
        self._pending = b""
        with contextlib.suppress(ConnectionResetError):
            while part := self.socket.recv(1 << 16):
                parts.append(part)
        return b"".join(parts)

    def push(self, data: bytes) -> int:
        """Sends it again and again, and reads nothing, until the server hangs up."""
        sent = 0
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while True:
                self.socket.sendall(data)
                sent += len(data)
        return sent

    def flood(self, data: bytes, most: int) -> int:
        """Sends it again and again until the server has answered or hung up.

        Tells how many bytes it took, or `most` if it takes everything.
        """
        sent = 0
        self.socket.setblocking(False)
        with selectors.DefaultSelector() as ready:
            ready.register(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
            while sent < most:
                (_, events), *_ = ready.select(PATIENCE_S)
                if events & selectors.EVENT_READ:
                    break
                try:
                    sent += self.socket.send(data)
                except BlockingIOError:
                    continue
                except OSError:
                    break
        self.socket.settimeout(PATIENCE_S)
        return sent


class _Reading:
    """What the standard library's reader of answers wants of a socket."""

    def __init__(self, source: socket.socket, pending: bytes) -> None:
        self._source = source
        self._pending = pending
        self._place = 0

    def makefile(self, mode: str) -> Self:
        assert mode == "rb"
        return self

    def readline(self, limit: int = -1) -> bytes:
        while (end := self._pending.find(b"\n", self._place)) < 0 and self._more():
            pass
        return self._take(len(self._pending) if end < 0 else end + 1)

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._pending) - self._place < size:
            if not self._more():
                break
        whole = len(self._pending)
        return self._take(whole if size < 0 else min(whole, self._place + size))

    def rest(self) -> bytes:
        return self._pending[self._place :]

    def flush(self) -> None:
        return None

    def close(self) -> None:
        return None

    def _take(self, end: int) -> bytes:
        found = self._pending[self._place : end]
        self._place = end
        return found

    def _more(self) -> bool:
        part = self.socket_part()
        self._pending += part
        return bool(part)

    def socket_part(self) -> bytes:
        try:
            return self._source.recv(1 << 16)
        except ConnectionResetError:
            return b""


@contextlib.contextmanager
def serving(
    limits: Limits | None = None,
    data: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Serving]:
    """A server with these limits, or `headway serve` as it is if there are none."""
    command = [sys.executable, "-m", "headway.cli.main", "serve"]
    variables = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    for name in ("HTTP_PORT", "PARTITION", "QUEUE_LEN"):
        variables.pop(name, None)
    variables |= {"HTTP_PORT": "0"} | dict(environment or {})
    with contextlib.ExitStack() as stack:
        if data is None:
            data = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if limits is None:
            command += ["--data", str(data)]
        else:
            written = msgspec.json.encode(limits).decode()
            command = [
                sys.executable,
                "-m",
                "tests.server.serving_fixture",
                str(data),
                written,
            ]
        process = subprocess.Popen(
            command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert "http://" in line, line
            yield Serving("http://" + line.strip().partition("http://")[2], process)
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=PATIENCE_S)
            if process.poll() is None:
                process.kill()
                process.communicate()


def main() -> None:
    limits = msgspec.json.decode(sys.argv[2].encode(), type=Limits)
    settings = Settings(data=Path(sys.argv[1]), port=0, limits=limits)
    serve(settings, lambda address: print(address, flush=True))  # noqa: T201


if __name__ == "__main__":
    main()
