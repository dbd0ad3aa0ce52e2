"""A server as its users have it: a process, asked over a socket."""

import http.client
import itertools
import json
import os
import select
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from headway.server.scopes import parse_scopes
from headway.server.tokens import TokenFile, wall_ms

PATIENCE_S = 60.0
IDLE_S = 30.0
"""After so long a kept connection is not trusted: the server hangs up in the end."""
_numbers = itertools.count()


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of a problem; empty if it is none."""
        is_problem = self.headers.get("content-type") == "application/problem+json"
        return str(self.json["code"]) if is_problem else ""


class Served:
    """`headway serve` on a free port of this machine."""

    module = "headway.cli.main"
    """What is run; it takes the arguments of `headway`."""

    def __init__(
        self, data: Path, *options: str, environment: dict[str, str] | None = None
    ) -> None:
        self.data = data
        self._log = data.with_name(f"{data.name}-{next(_numbers)}.log")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command(
                    *("serve", "--data", str(data), "--port", "0", *options),
                    module=self.module,
                ),
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
            )
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE_S)
        assert ready, "the server says nothing"
        self._said = self._process.stdout.readline()
        assert b" listens on " in self._said, self.log()
        self.address = self._said.decode().split()[-1]
        self._connection: http.client.HTTPConnection | None = None
        self._used_s = 0.0

    @property
    def place(self) -> tuple[str, int]:
        parts = urlsplit(self.address)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        token: str | None = None,
        **headers: str,
    ) -> Answer:
        """One request on a connection that is kept; names of headers have _ for -."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            sent["authorization"] = f"Bearer {token}"
        content = None
        if body is not None:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            sent.setdefault("content-type", "application/json")
        if time.monotonic() - self._used_s > IDLE_S and self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._connection is None:
            self._connection = self._connect()
        self._used_s = time.monotonic()
        self._connection.request(method, path, content, sent)
        got = self._connection.getresponse()
        found = {name.lower(): value for name, value in got.getheaders()}
        return Answer(got.status, found, got.read())

    def until(self, status: int, path: str, token: str | None = None) -> Answer:
        """Asks until it is answered so."""
        until_s = time.monotonic() + PATIENCE_S
        while True:
            answer = self.ask("GET", path, token=token)
            if answer.status == status:
                return answer
            assert time.monotonic() < until_s, answer

    def make_token(self, name: str, *scopes: str) -> str:
        return make_token(self.data, name, *scopes)

    def log(self) -> str:
        """Everything that it wrote so far."""
        return self._said.decode() + self._log.read_text()

    def events(self) -> list[dict[str, Any]]:
        """The lines of its log; what is no JSON is an error."""
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE_S)

    def hang_up(self) -> None:
        """The next request has a fresh connection: one idle for long may be closed."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def stop(self) -> int:
        self.hang_up()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        rest, _ = self._process.communicate(timeout=PATIENCE_S)
        self._said += rest
        return self._process.returncode

    def wait(self) -> int:
        """Until it ends by itself."""
        return self._process.wait(PATIENCE_S)

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self.place
        if self.address.startswith("https"):
            context = ssl.create_default_context(cafile=self.data / "tls.crt")
            return http.client.HTTPSConnection(
                host, port, timeout=PATIENCE_S, context=context
            )
        return http.client.HTTPConnection(host, port, timeout=PATIENCE_S)


Serve = Callable[..., Served]
"""Starts a server with some options."""


def command(*arguments: str, module: str = Served.module) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def make_token(
    data: Path, name: str, *scopes: str, expires_ms: int | None = None
) -> str:
    data.mkdir(exist_ok=True)
    parsed = parse_scopes(scopes)
    return TokenFile(data).add(name, parsed, wall_ms(), expires_ms)
