"""`python -m headway.throttling QUEUE MODULE:CALLABLE`: the process of one throttler.

Its stdin is a socket to the owner. It ends when nobody is at the other end, whatever its
function does at that time; what that prints goes where the owner has led its output.
"""

import os
import signal
import socket
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import SimpleQueue
from types import MappingProxyType
from typing import Any, Final

import msgspec

from headway.core.durations import parse_ms
from headway.throttling import Later, Refuse, Running, Start, ThrottledJob
from headway.throttling.loading import NoThrottler, load
from headway.throttling.messages import (
    KIND,
    LABEL,
    QUEUE,
    TENANT,
    Batch,
    Frames,
    Hello,
    Key,
    Ready,
    Told,
    framed,
)

RECEIVED: Final = 1 << 18
TEXT_MAX: Final = 500
VALUES_MAX: Final = 100
"""Characters of what was answered, where it is no verdict."""


class Counts:
    """The owner's counts of what runs, and what was told to start since."""

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._queues: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._tenants: Counter[str] = Counter()
        self._labels: dict[str, Counter[str]] = {}
        self._labels_shown: dict[str, Mapping[str, int]] = {}

    def set(self, key: Key, count: int) -> None:
        axis, name, value = key
        if axis == LABEL:
            self._set_label(name, value, count)
            return
        part = {QUEUE: self._queues, KIND: self._kinds, TENANT: self._tenants}[axis]
        _put(part, name, count)

    def start(self, job: ThrottledJob) -> None:
        """It counts for those that are asked about in the same batch."""
        self._queues[self._queue] += 1
        self._kinds[job.kind] += 1
        self._tenants[job.tenant] += 1
        for name, value in job.labels.items():
            known = self._labels.get(name)
            self._set_label(name, value, 1 if known is None else known[value] + 1)

    def view(self) -> Running:
        return Running(
            total=self._queues[self._queue],
            kinds=MappingProxyType(self._kinds),
            tenants=MappingProxyType(self._tenants),
            labels=MappingProxyType(self._labels_shown),
            queues=MappingProxyType(self._queues),
        )

    def _set_label(self, name: str, value: str, count: int) -> None:
        part = self._labels.get(name)
        if part is None:
            part = self._labels[name] = Counter()
            self._labels_shown[name] = MappingProxyType(part)
        _put(part, value, count)
        if not part:
            del self._labels[name], self._labels_shown[name]


def _put(part: Counter[str], name: str, count: int) -> None:
    """What does not run any more is not kept, or names would gather."""
    if count:
        part[name] = count
    else:
        part.pop(name, None)


def main() -> int:
    # Whoever stops all processes of a service means the server: it ends this one.
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_IGN)
    queue, place = sys.argv[1:]
    channel = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    inbox: SimpleQueue[Hello | Batch] = SimpleQueue()
    threading.Thread(target=_listen, args=(channel, inbox), daemon=True).start()
    hello = inbox.get()
    assert isinstance(hello, Hello)
    sys.path += [entry for entry in hello.path if entry not in sys.path]
    try:
        function = load(place)
    except NoThrottler as error:
        channel.sendall(framed(Ready(str(error))))
        return 1
    channel.sendall(framed(Ready()))
    counts = Counts(queue)
    while True:
        batch = inbox.get()
        assert isinstance(batch, Batch)
        for key, count in batch.counts:
            counts.set(key, count)
        for job in batch.jobs:
            # One by one: a verdict that was reached is not lost with a later one.
            channel.sendall(framed(judge(function, job, counts)))


def judge(function: Callable[..., Any], job: ThrottledJob, counts: Counts) -> Told:
    """Asks about one job; what is raised is told, and what is no verdict."""
    try:
        verdict = function(job, counts.view())
        told = _told(verdict)
    except Exception as error:
        place = _place_of(error)
        return Told(
            error=f"{type(error).__name__} {place}", text=_text_of(error, place)
        )
    if told.verdict == "start":
        counts.start(job)
    return told


def _told(verdict: object) -> Told:
    match verdict:
        case Start():
            return Told("start")
        case type() if verdict is Start:
            return Told("start")
        case Later(delay=None, at=at):
            assert at is not None
            return Told("later", at_ms=max(1, int(at.timestamp() * 1_000)))
        case Later(delay=delay):
            return Told("later", delay_ms=parse_ms(delay, "delay"))
        case Refuse(text=text):
            return Told("refuse", text=str(text)[:TEXT_MAX])
        case _:
            text = f"answered {verdict!r}"[:VALUES_MAX]
            return Told(error="no verdict", text=f"{text}: not Start, Later or Refuse")


def _text_of(error: Exception, place: str) -> str:
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # an error that can't even say what it is
        text = type(error).__name__
    return f"{text[:TEXT_MAX]} ({place})"


def _place_of(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"at {Path(frame.filename).name}:{frame.lineno}"


def _listen(channel: socket.socket, inbox: "SimpleQueue[Hello | Batch]") -> None:
    """Hands messages on, until nobody is at the other end."""
    frames = Frames()
    kind: type[Hello | Batch] = Hello
    try:
        while more := channel.recv(RECEIVED):
            frames.feed(more)
            while (message := frames.next(kind)) is not None:
                inbox.put(message)
                kind = Batch
    except (OSError, msgspec.MsgspecError):
        pass
    # At once: the function may be in the middle of something that never ends.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
