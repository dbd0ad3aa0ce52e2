"""Several worker processes of one command: one that dies is started again."""

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from types import FrameType
from typing import Final

from headway.worker.reloading import CHANGED_STATUS

log: Final = logging.getLogger("headway.worker")
LOOK_S: Final = 0.2
FIRST_S: Final = 0.1
LONGEST_S: Final = 10.0
STEADY_S: Final = 60.0
"""A process that lived so long is started again without a pause."""


def end_with(parent: int) -> None:
    """Asks this process to stop when the fleet that started it is gone."""

    def watch() -> None:
        pause = threading.Event()
        while os.getppid() == parent:
            pause.wait(LOOK_S * 5)
        log.error("the fleet is gone; this worker stops")
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="headway-fleet", daemon=True).start()


class Fleet:
    """Keeps so many processes alive until it is told to stop."""

    def __init__(self, command: Sequence[str], count: int) -> None:
        self._command = list(command)
        self._members = [_Member() for _ in range(count)]
        self._is_stopping = threading.Event()

    def run(self) -> None:
        """Until SIGTERM or SIGINT, which is passed on each time it comes."""
        kept = {
            number: signal.signal(number, self._pass_on)
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            while not self._is_stopping.is_set():
                for member in self._members:
                    member.look_after(self._command)
                self._is_stopping.wait(LOOK_S)
            for member in self._members:
                member.end()
        finally:
            for number, handler in kept.items():
                signal.signal(number, handler)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping.set()
        for member in self._members:
            member.send(signal.SIGTERM)


class _Member:
    """One place in the fleet."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._started_s = 0.0
        self._pause_s = FIRST_S
        self._not_before_s = 0.0
        self._told: subprocess.Popen[bytes] | None = None
        """The process that was sent a signal."""

    def look_after(self, command: list[str]) -> None:
        now_s = time.monotonic()
        if self._process is not None:
            status = self._process.poll()
            if status is None:
                return
            self._process = None
            if status == CHANGED_STATUS:
                self._pause_s = FIRST_S
            else:
                is_steady = now_s - self._started_s >= STEADY_S
                pause_s = min(self._pause_s * 2, LONGEST_S)
                self._pause_s = FIRST_S if is_steady else pause_s
                self._not_before_s = now_s + self._pause_s
                log.error("a worker process ended with %d; another starts", status)
        if now_s >= self._not_before_s:
            self._started_s = now_s
            # A group of its own: a Ctrl-C in the terminal comes by way of the fleet.
            self._process = subprocess.Popen(command, process_group=0)  # noqa: S603

    def send(self, number: signal.Signals) -> None:
        self._told = self._process
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def end(self) -> None:
        if self._process is None:
            return
        if self._told is not self._process:
            # It was just being started when the signal came.
            self.send(signal.SIGTERM)
        self._process.wait()
