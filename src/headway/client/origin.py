"""Where a server is, what every request to it says, and when to try again."""

import random
import ssl
from collections.abc import Iterator
from typing import Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from headway.client.calls import Call
from headway.client.errors import Elsewhere, Unreachable, error_of
from headway.core.errors import BadValue
from headway.wire.problems import Problem

T = TypeVar("T")
CONNECT_S: Final = 10.0
CONNECT_NEXT_S: Final = 3.0
"""How long a connection may take where there is another address to try."""
ANSWER_S: Final = 30.0
"""How long an answer may take beyond what the call asks the server to wait."""
TRIES: Final = 6
"""How often a call is sent before its caller is told that nobody answers."""
FIRST_S: Final = 0.05
LONGEST_S: Final = 5.0
_PORTS: Final = {"http": 80, "https": 443}
_AGAIN: Final = {"busy", "rate_limited", "stopped", "too_many_requests"}
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
        lines = [f"{name}: {value}" for name, value in self.headers.items()]
        self.common = "\r\n".join(lines)
        """The headers as they are sent."""

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
                raise Elsewhere(f"{self.url} answered {status}") from None
            problem = Problem(
                type="", title="no such answer", status=status, code="not_headway"
            )
        if problem.code == "stopped":
            raise Elsewhere(f"{self.url}: {problem.code}: {problem.detail}")
        if problem.code in _AGAIN:
            raise Unreachable(f"{self.url}: {problem.code}: {problem.detail}")
        raise error_of(problem)


class Origins:
    """The servers of one list; a client stays with one of them while it answers.

    Where it begins is left to chance, so that clients spread over all of them.
    """

    def __init__(self, urls: str, token: str | None = None) -> None:
        """`urls` are addresses with commas between."""
        self._all = [Origin(url.strip(), token) for url in urls.split(",")]
        if len({origin.url for origin in self._all}) < len(self._all):
            raise BadValue("url", urls, "names a server twice")
        self._place = random.randrange(len(self._all))  # noqa: S311 spreading, no secret

    def __len__(self) -> int:
        return len(self._all)

    @property
    def current(self) -> Origin:
        return self._all[self._place]

    @property
    def connect_s(self) -> float:
        """How long a connection may take."""
        return CONNECT_S if len(self._all) == 1 else CONNECT_NEXT_S

    def leave(self, origin: Origin) -> None:
        """It does not answer: the next one's turn, unless somebody has left before."""
        if origin is self.current:
            self._place = (self._place + 1) % len(self._all)


class Turns:
    """How often one call is sent, and what pause there is before it is sent again."""

    def __init__(self, tries: int, others: int) -> None:
        """`others` are servers that have not been asked yet."""
        self._left = tries - 1
        self._others = others
        self._pauses = delays_s()

    def pause_s(self, error: Unreachable) -> float:
        """Raises the error if that was the last try."""
        if self._left <= 0:
            raise error
        self._left -= 1
        if isinstance(error, Elsewhere) and self._others > 0:
            self._others -= 1
            return 0.0
        return next(self._pauses)


def delays_s() -> Iterator[float]:
    """Growing pauses without end, spread so that not all come back at once."""
    pause_s = FIRST_S
    while True:
        yield pause_s * random.uniform(0.5, 1.0)  # noqa: S311 spreading, no secret
        pause_s = min(pause_s * 2, LONGEST_S)
