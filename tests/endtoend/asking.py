"""A client that keeps its connection and asks until it is answered."""

import json
import threading
import time
from http.client import HTTPConnection, HTTPException
from typing import Any, Final

PAUSE_S: Final = 0.02
TIMEOUT_S: Final = 20.0
NDJSON: Final = "application/x-ndjson"
_never: Final = threading.Event()


def pause(seconds: float) -> None:
    """Others go on meanwhile; nothing is concluded from how long it took."""
    _never.wait(seconds)


class Unanswered(Exception):
    """Nobody has answered for so long that something is wrong."""


class Asker:
    """No answer, or one that says nothing of the outcome: the same is asked again."""

    def __init__(self, port: int, patience_s: float = 60.0) -> None:
        self._port = port
        self._patience_s = patience_s
        self._connection: HTTPConnection | None = None
        self.repeats = 0
        self.timeouts = 0
        """Asks that were neither answered nor cut off."""

    def ask(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        """Status and content, once they are known."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        until_s = time.monotonic() + self._patience_s
        while time.monotonic() < until_s:
            answer = self.ask_once(method, path, content, **headers)
            # A bug is told, and not asked for again.
            if answer is not None and answer[0] <= 500:
                return answer
            self.repeats += 1
            pause(PAUSE_S)
        raise Unanswered(f"{method} {path}")

    def ask_once(
        self, method: str, path: str, content: bytes, **headers: str
    ) -> tuple[int, Any] | None:
        """None if there is no answer."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named.setdefault("content-type", "application/json")
        try:
            if self._connection is None:
                self._connection = HTTPConnection(
                    "127.0.0.1", self._port, timeout=TIMEOUT_S
                )
            self._connection.request(method, path, content, named)
            response = self._connection.getresponse()
            text = response.read()
        except (OSError, HTTPException) as error:
            self.timeouts += isinstance(error, TimeoutError)
            self.close()
            return None
        return response.status, json.loads(text) if text else None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
