"""Where a server is, what every request to it says, and when to try again."""

import random
import ssl
from collections.abc import Iterator
from typing import Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from headway.client.calls import Call
from headway.client.errors import Unreachable, error_of
from headway.core.errors import BadValue
from headway.wire.problems import Problem

T = TypeVar("T")
CONNECT_S: Final = 10.0
ANSWER_S: Final = 30.0
"""How long an answer may take beyond what the call asks the server to wait."""
TRIES: Final = 6
"""How often a call is sent before its caller is told that nobody answers."""
FIRST_S: Final = 0.05
LONGEST_S: Final = 5.0
_PORTS: Final = {"http": 80, "https": 443}
_AGAIN: Final = {"busy", "stopped", "too_many_requests"}
_problem: Final = msgspec.json.Decoder(Problem).decode


class Origin:
    """One server, and who asks it."""

    def __init__(self, url: str, token: str | None = None) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise BadValue("url", url, f"is no address: {error}") from error
        if parts.scheme not in _PORTS or not parts.hostname:
            raise BadValue("url", url, "must be http://HOST:PORT or https://HOST:PORT")
        if parts.username is not None or parts.path.strip("/") or parts.query:
            raise BadValue("url", parts.hostname, "is more than a host and a port")
        if token is not None and not token.isascii():
            raise BadValue("token", "…", "holds other than ASCII characters")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self.host = parts.hostname
        self.port = port or _PORTS[parts.scheme]
        self.context = ssl.create_default_context() if parts.scheme == "https" else None
        self.headers = {
            "host": parts.netloc,
            "accept": "application/json",
            "content-type": "application/json",
        }
        if token:
            self.headers["authorization"] = f"Bearer {token}"

    def read(self, call: Call[T], status: int, body: bytes) -> T:
        """The answer, or the exception that a problem is; Unreachable if it may pass."""
        if status < 300:
            try:
                return call.read(body)
            except msgspec.MsgspecError as error:
                raise Unreachable(f"{self.url} is no Headway server") from error
        try:
            problem = _problem(body)
        except msgspec.MsgspecError:
            # Something between us and the server answers in its place.
            if status >= 500:
                raise Unreachable(f"{self.url} answered {status}") from None
            problem = Problem(
                type="", title="no such answer", status=status, code="not_headway"
            )
        if problem.code in _AGAIN:
            raise Unreachable(f"{self.url}: {problem.code}: {problem.detail}")
        raise error_of(problem)


def delays_s() -> Iterator[float]:
    """Growing pauses without end, spread so that not all come back at once."""
    pause_s = FIRST_S
    while True:
        yield pause_s * random.uniform(0.5, 1.0)  # noqa: S311 spreading, no secret
        pause_s = min(pause_s * 2, LONGEST_S)
