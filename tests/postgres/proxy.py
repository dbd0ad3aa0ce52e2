"""A way to the database that can be cut: before it has heard, or before it is heard."""

import socket
import threading
from contextlib import suppress
from typing import Literal

Cut = Literal["", "asked", "answered"]


class Proxy:
    """Passes bytes on, until it is told to lose those of one direction and hang up."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cut: Cut = ""
        """What is lost next: what the client has asked, or what it was answered."""
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._to))
            ends: list[tuple[socket.socket, socket.socket, Cut]] = [
                (client, server, "asked"),
                (server, client, "answered"),
            ]
            for way in ends:
                threading.Thread(target=self._pump, args=way, daemon=True).start()

    def _pump(self, source: socket.socket, to: socket.socket, way: Cut) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if self.cut == way:
                    break
                to.sendall(data)
        for end in (source, to):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
