"""The client that blocks, on the standard library's HTTP."""

import os
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Concatenate, Final, ParamSpec, TypeVar

from headway.client import calls
from headway.client.calls import Call
from headway.client.errors import Elsewhere, Unreachable
from headway.client.origin import ANSWER_S, TRIES, Origin, Origins, Turns

P = ParamSpec("P")
T = TypeVar("T")
IDLE_MAX: Final = 16
"""Connections that are kept for the next caller."""


def _asked(verb: Callable[P, Call[T]]) -> Callable[Concatenate["Client", P], T]:
    def ask(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.ask(verb(*args, **kwargs))

    ask.__doc__ = verb.__doc__
    ask.__name__ = verb.__name__
    return ask


class Client:
    """A server, for any number of threads; each call has a connection to itself.

    `url` may name several servers of a cluster, with commas between: the client stays
    with one of them, and goes on to the next when that one does not answer.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        self._origins = Origins(url, token)
        self._idle: list[tuple[Origin, HTTPConnection]] = []
        self._process = os.getpid()
        self._turn = threading.Lock()

    enqueue = _asked(calls.enqueue)
    reply = _asked(calls.reply)
    result = _asked(calls.result)
    schedule = _asked(calls.schedule)
    configure = _asked(calls.configure)

    def ask(self, call: Call[T]) -> T:
        """Sends the call until it is answered, or has been sent often enough.

        All calls may be repeated: what was done already is known by its key or token.
        """
        turns = Turns(TRIES, len(self._origins) - 1)
        while True:
            try:
                return self._once(call)
            except Unreachable as error:
                time.sleep(turns.pause_s(error))

    def close(self) -> None:
        with self._turn:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _once(self, call: Call[T]) -> T:
        origin, connection, is_fresh = self._connection()
        try:
            status, body = self._exchange(call, origin, connection)
            return origin.read(call, status, body)
        except Elsewhere as error:
            # One that was kept for long may have been closed: that says nothing yet.
            if is_fresh or not isinstance(error.__cause__, ConnectionError):
                self._leave(origin)
            raise

    def _exchange(
        self, call: Call[T], origin: Origin, connection: HTTPConnection
    ) -> tuple[int, bytes]:
        try:
            connection.request(call.method, call.path, call.body, origin.headers)
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, HTTPException) as error:
            connection.close()
            text = str(error) or type(error).__name__
            text = f"no answer from {origin.url} ({text})"
            raise Elsewhere(text) from error
        with self._turn:
            is_kept = not answer.will_close and len(self._idle) < IDLE_MAX
            if is_kept:
                self._idle.append((origin, connection))
        if not is_kept:
            connection.close()
        return answer.status, body

    def _connection(self) -> tuple[Origin, HTTPConnection, bool]:
        """One to a server that takes it, and whether it is a fresh one."""
        while (kept := self._kept()) is not None:
            origin, connection = kept
            if origin is self._origins.current:
                return origin, connection, False
            connection.close()
        others = len(self._origins)
        while True:
            origin = self._origins.current
            try:
                return origin, self._connect(origin), True
            except OSError as error:
                self._leave(origin)
                others -= 1
                if others <= 0:
                    text = f"no connection to {origin.url} ({error})"
                    raise Unreachable(text) from error

    def _kept(self) -> tuple[Origin, HTTPConnection] | None:
        with self._turn:
            if self._process != os.getpid():
                # After a fork the connections are the parent's: two may not use one.
                self._idle, self._process = [], os.getpid()
            return self._idle.pop() if self._idle else None

    def _leave(self, origin: Origin) -> None:
        with self._turn:
            self._origins.leave(origin)

    def _connect(self, origin: Origin) -> HTTPConnection:
        timeout_s = self._origins.connect_s
        connection = (
            HTTPConnection(origin.host, origin.port, timeout=timeout_s)
            if origin.context is None
            else HTTPSConnection(
                origin.host, origin.port, timeout=timeout_s, context=origin.context
            )
        )
        connection.connect()
        connection.sock.settimeout(ANSWER_S)
        return connection
