"""Something between a client and a server that loses requests or answers."""

import threading
from collections.abc import Callable
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


class Between:
    """Passes everything on, but for what it is told to lose."""

    def __init__(self, address: str) -> None:
        self._target = urlsplit(address)
        self.lost_request: Callable[[str, str], bool] = _never
        """Method and path of requests that never arrive."""
        self.lost_answer: Callable[[str, str], bool] = _never
        """Method and path of requests that are carried out, and not answered."""
        self.seen: list[tuple[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def passed(self, method: str, path: str, headers: Any, body: bytes) -> Any:
        """The server's answer; None means that nobody is to hear it."""
        self.seen.append((method, path))
        if self.lost_request(method, path):
            return None
        target = HTTPConnection(self._target.hostname or "", self._target.port)
        try:
            sent = {
                name: value
                for name, value in headers.items()
                if name.lower() not in {"connection", "host"}
            }
            target.request(method, path, body, sent)
            answer = target.getresponse()
            told = answer.status, answer.getheader("content-type"), answer.read()
        finally:
            target.close()
        return None if self.lost_answer(method, path) else told

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        between = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("content-length", 0))
                body = self.rfile.read(length)
                told = between.passed(self.command, self.path, self.headers, body)
                self.close_connection = True
                if told is None:
                    return
                status, kind, content = told
                self.send_response(status)
                if kind is not None:
                    self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def __getattr__(self, name: str) -> Any:
                if name.startswith("do_"):
                    return self.do_GET
                raise AttributeError(name)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                return

        return Handler


def _never(method: str, path: str) -> bool:
    return False
