"""A server as the command line speaks to it, by the standard library's HTTP."""

import json
import os
import ssl
from collections.abc import Callable
from functools import wraps
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import click

from headway.cli.refused import Refused

URL: Final = "http://127.0.0.1:8080"
TIMEOUT_S: Final = 90.0

R = TypeVar("R")


class Remote:
    """One server, and who asks it."""

    def __init__(self, url: str, token: str | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Refused(f"{url}: a server is http://HOST:PORT or https://HOST:PORT")
        self._url = f"{parts.scheme}://{parts.netloc}"
        self._headers = {"accept": "application/json"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self._line: HTTPConnection = (
            HTTPSConnection(
                parts.hostname,
                parts.port,
                timeout=TIMEOUT_S,
                context=ssl.create_default_context(),
            )
            if parts.scheme == "https"
            else HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT_S)
        )

    def get(self, *path: str, **query: object) -> Any:
        """Asks; values of None are left out of the query."""
        given = {name: value for name, value in query.items() if value is not None}
        return self._call("GET", path, None, urlencode(given))

    def post(self, *path: str, body: object = None) -> Any:
        return self._call("POST", path, body)

    def put(self, *path: str, body: object) -> Any:
        return self._call("PUT", path, body)

    def patch(self, *path: str, body: object) -> Any:
        return self._call("PATCH", path, body)

    def delete(self, *path: str) -> Any:
        return self._call("DELETE", path, None)

    def _call(
        self, method: str, path: tuple[str, ...], body: object, query: str = ""
    ) -> Any:
        target = "/" + "/".join(quote(part, safe="") for part in path)
        headers = dict(self._headers)
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            headers["content-type"] = "application/json"
        try:
            self._line.request(
                method, f"{target}?{query}" if query else target, content, headers
            )
            answer = self._line.getresponse()
            text = answer.read()
        except (OSError, HTTPException) as error:
            raise Refused(
                f"no answer from {self._url} ({error}); "
                "start a server with `headway serve`, or name another with --server"
            ) from error
        if answer.status >= 400:
            raise Refused(_problem(answer.status, text))
        if not text:
            return None
        try:
            return json.loads(text)
        except ValueError as error:
            raise Refused(f"{self._url} is no Headway server") from error


def with_server(command: Callable[..., R]) -> Callable[..., R]:
    """Adds --server and --token, and gives the command its server."""

    @click.option(
        "--server",
        default=lambda: os.environ.get("HEADWAY_SERVER", URL),
        show_default=f"$HEADWAY_SERVER or {URL}",
        help="The server to ask.",
    )
    @click.option(
        "--token",
        default=lambda: os.environ.get("HEADWAY_TOKEN"),
        show_default="$HEADWAY_TOKEN",
        help="A bearer token, where the server wants one.",
    )
    @wraps(command)
    def called(*args: Any, server: str, token: str | None, **values: Any) -> R:
        return command(Remote(server, token), *args, **values)

    return called


def _problem(status: int, text: bytes) -> str:
    try:
        told = json.loads(text)
        parts = [told.get("key", ""), told.get("detail", "")]
        return ": ".join(filter(None, [told["title"], *parts]))
    except (ValueError, KeyError, AttributeError):
        return f"the server answered {status}"
