"""A server as the command line speaks to it, by the standard library's HTTP."""

import json
import os
import random
import time
from collections.abc import Callable
from contextlib import closing
from functools import wraps
from http.client import HTTPConnection, HTTPException
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import click
import msgspec

from headway.cli.refused import Refused
from headway.wire.live import REASON

URL: Final = "http://127.0.0.1:8080"
TIMEOUT_S: Final = 90.0
IDLE_S: Final = 20.0
"""A line that was not used for so long may have been closed: another one is taken."""

R = TypeVar("R")


class NoAnswer(Refused):
    """Nobody answered."""

    def __init__(self, text: str, *, is_unknown: bool) -> None:
        super().__init__(text)
        self.is_unknown = is_unknown
        """Whether what was asked for may have been done."""


class Problem(Refused):
    """The server said no."""

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code


class _Line(NamedTuple):
    """A way to one server."""

    url: str
    connection: HTTPConnection


class Remote:
    """A server, or several of which any will do, and who asks it."""

    def __init__(self, urls: str, token: str | None) -> None:
        lines = [_line(url.strip()) for url in urls.split(",")]
        # Which of them comes first is left to chance, so that all get their share.
        self._lines = random.sample(lines, len(lines))
        self._headers = {"accept": "application/json"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self._used_s = 0.0
        self.text = b""
        """The last answer, as it came."""

    def get(self, *path: str, **query: object) -> Any:
        """Asks; values of None are left out of the query."""
        given = {name: value for name, value in query.items() if value is not None}
        return self._call("GET", path, None, urlencode(given))

    def post(self, *path: str, body: object = None) -> Any:
        return self._call("POST", path, body)

    def because(self, reason: str) -> None:
        """Whatever is done from here on is done for this reason, and kept with it."""
        self._headers[REASON.lower()] = quote(reason, safe="")

    def put(self, *path: str, body: object) -> Any:
        return self._call("PUT", path, body)

    def patch(self, *path: str, body: object) -> Any:
        return self._call("PATCH", path, body)

    def delete(self, *path: str) -> Any:
        return self._call("DELETE", path, None)

    def close(self) -> None:
        for line in self._lines:
            line.connection.close()

    def _call(
        self, method: str, path: tuple[str, ...], body: object, query: str = ""
    ) -> Any:
        target = "/" + "/".join(quote(part, safe="") for part in path)
        headers = dict(self._headers)
        content = None
        if body is not None:
            content = msgspec.json.encode(body)
            headers["content-type"] = "application/json"
        status = self._exchange(
            method, f"{target}?{query}" if query else target, content, headers
        )
        if status >= 400:
            raise _problem(status, self.text)
        if not self.text:
            return None
        try:
            return json.loads(self.text)
        except ValueError as error:
            raise Refused(f"{self._lines[0].url} is no Headway server") from error

    def _exchange(
        self, method: str, target: str, content: bytes | None, headers: dict[str, str]
    ) -> int:
        is_sent = False
        try:
            connection = self._connected()
            is_sent = True
            connection.request(method, target, content, headers)
            answer = connection.getresponse()
            self.text = answer.read()
        except (OSError, HTTPException) as error:
            url, connection = self._lines[0]
            connection.close()
            raise NoAnswer(
                f"no answer from {url} ({error}); "
                "start a server with `headway serve`, or name another with --server",
                is_unknown=is_sent,
            ) from error
        self._used_s = time.monotonic()
        return answer.status

    def _connected(self) -> HTTPConnection:
        """A connection to the first server that takes one; it stays the first."""
        if time.monotonic() - self._used_s > IDLE_S:
            self._lines[0].connection.close()
        for others in reversed(range(len(self._lines))):
            connection = self._lines[0].connection
            if connection.sock is not None:
                break
            try:
                connection.connect()
            except OSError:
                if not others:
                    raise
                self._lines.append(self._lines.pop(0))
            else:
                break
        return connection


def server_given(command: Callable[..., R]) -> Callable[..., R]:
    """Adds --server and --token."""
    token = click.option(
        "--token",
        default=lambda: os.environ.get("HEADWAY_TOKEN"),
        show_default="$HEADWAY_TOKEN",
        help="A bearer token, where the server wants one.",
    )
    server = click.option(
        "--server",
        default=lambda: os.environ.get("HEADWAY_SERVER", URL),
        show_default=f"$HEADWAY_SERVER or {URL}",
        help="The server to ask; several of a cluster with commas between.",
    )
    return server(token(command))


def with_server(command: Callable[..., R]) -> Callable[..., R]:
    """Adds --server and --token, and gives the command its server."""

    @server_given
    @wraps(command)
    def called(*args: Any, server: str, token: str | None, **values: Any) -> R:
        with closing(Remote(server, token)) as remote:
            return command(remote, *args, **values)

    return called


def _line(url: str) -> _Line:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Refused(f"{url}: {error}") from error
    host = parts.hostname
    if parts.scheme not in ("http", "https") or not host:
        raise Refused(f"{url}: a server is http://HOST:PORT or https://HOST:PORT")
    shown = f"{parts.scheme}://{parts.netloc}"
    if parts.scheme == "http":
        return _Line(shown, HTTPConnection(host, port, timeout=TIMEOUT_S))
    import ssl
    from http.client import HTTPSConnection

    context = ssl.create_default_context()
    return _Line(shown, HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context))


def _problem(status: int, text: bytes) -> Problem:
    try:
        told = json.loads(text)
        parts = [told.get("key", ""), told.get("detail", "")]
        if parts[0] and parts[1].startswith(parts[0]):
            parts[0] = ""  # the detail says it already
        line = ": ".join(filter(None, [told["title"], *parts]))
        return Problem(line, str(told.get("code", "")))
    except (ValueError, KeyError, AttributeError):
        return Problem(f"the server answered {status}", "")
