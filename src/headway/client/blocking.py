"""The client that blocks, on the standard library's HTTP."""

import os
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from itertools import islice
from typing import Concatenate, Final, ParamSpec, TypeVar

from headway.client import calls
from headway.client.calls import Call
from headway.client.errors import Unreachable
from headway.client.origin import ANSWER_S, TRIES, Origin, delays_s

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
    """A server, for any number of threads; each call has a connection to itself."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._origin = Origin(url, token)
        self._idle: list[HTTPConnection] = []
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
        pauses = islice(delays_s(), TRIES - 1)
        while True:
            try:
                status, body = self._once(call)
                return self._origin.read(call, status, body)
            except Unreachable:
                pause_s = next(pauses, None)
                if pause_s is None:
                    raise
                time.sleep(pause_s)

    def close(self) -> None:
        with self._turn:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _once(self, call: Call[T]) -> tuple[int, bytes]:
        with self._turn:
            if self._process != os.getpid():
                # After a fork the connections are the parent's: two may not use one.
                self._idle, self._process = [], os.getpid()
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self._connect()
        try:
            connection.request(call.method, call.path, call.body, self._origin.headers)
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, HTTPException) as error:
            connection.close()
            text = str(error) or type(error).__name__
            text = f"no answer from {self._origin.url} ({text})"
            raise Unreachable(text) from error
        with self._turn:
            is_kept = not answer.will_close and len(self._idle) < IDLE_MAX
            if is_kept:
                self._idle.append(connection)
        if not is_kept:
            connection.close()
        return answer.status, body

    def _connect(self) -> HTTPConnection:
        origin = self._origin
        if origin.context is None:
            return HTTPConnection(origin.host, origin.port, timeout=ANSWER_S)
        return HTTPSConnection(
            origin.host, origin.port, timeout=ANSWER_S, context=origin.context
        )
