"""One request, and what can be said of its outcome."""

import json
import socket
from http.client import HTTPConnection, HTTPException
from typing import Any, Final, NamedTuple

from tests.cluster.chaos.records import Outcome

TIMEOUT_S: Final = 4.0
NOTHING_DONE: Final = frozenset({"busy", "rate_limited"})


class Told(NamedTuple):
    outcome: Outcome
    code: str
    content: Any = None


class Asker:
    """Connections to the nodes; each is kept while it works."""

    def __init__(
        self, ports: dict[str, int], token: str = "", timeout_s: float = TIMEOUT_S
    ) -> None:
        self._ports = ports
        self._timeout_s = timeout_s
        self._headers = {"content-type": "application/json"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self._kept: dict[str, HTTPConnection] = {}

    def ask(self, node: str, method: str, path: str, body: Any = None) -> Told:
        content = None if body is None else json.dumps(body).encode()
        connection = self._kept.pop(node, None)
        try:
            if connection is None:
                connection = self._connect(node)
        except OSError as error:
            return Told("fail", type(error).__name__)
        try:
            connection.request(method, path, content, self._headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, HTTPException) as error:
            connection.close()
            return Told("unknown", type(error).__name__)
        if answer.will_close:
            connection.close()
        else:
            self._kept[node] = connection
        return _told(answer.status, text)

    def close(self) -> None:
        for connection in self._kept.values():
            connection.close()
        self._kept.clear()

    def _connect(self, node: str) -> HTTPConnection:
        connection = HTTPConnection(
            "127.0.0.1", self._ports[node], timeout=self._timeout_s
        )
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def _told(status: int, text: bytes) -> Told:
    try:
        content = json.loads(text) if text else None
    except ValueError:
        return Told("unknown", f"{status} without JSON")
    if status < 300:
        return Told("ok", "", content)
    code = str(content.get("code", status)) if isinstance(content, dict) else ""
    if status < 500 or code in NOTHING_DONE:
        return Told("fail", code, content)
    return Told("unknown", code, content)
