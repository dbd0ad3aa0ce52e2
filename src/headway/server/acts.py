"""Acts of operators: who did what, when and why, in a file that is only added to."""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Protocol

import msgspec

from headway.wire.live import Act

FILE: Final = "acts.jsonl"
FILE_MAX: Final = 16 << 20
"""Bytes after which the file is set aside, in place of the one set aside before."""
REMEMBERED: Final = 2_000
"""Acts that can be asked for; older ones are in the files."""


class Told(Protocol):
    """Hears of acts that could not be written down."""

    def warned(self, event: str, **fields: object) -> None: ...


class Acts:
    """Writes acts down, many with one flush, and remembers the newest."""

    def __init__(
        self, folder: Path, told: Told, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._path = folder / FILE
        self._told = told
        self._loop = loop
        self._thread = ThreadPoolExecutor(1, "headway-acts")
        self._pending: list[tuple[Act, Callable[[], None]]] = []
        self._is_writing = False
        self._is_cut = False
        """The file ends in half a line, which must not spoil the next."""
        self._known: deque[Act] = deque(self._read(), REMEMBERED)

    def note(self, act: Act, then: Callable[[], None]) -> None:
        """`then` is called when the act is on stable storage, or can't be.

        What was done is done: an act that can't be written down is told to the log.
        """
        self._pending.append((act, then))
        if not self._is_writing:
            self._begin()

    def newest(
        self, limit: int, before: int, allowed: Callable[[str], bool]
    ) -> list[Act]:
        """The newest first, of those whose queue is allowed, older than `before`."""
        found: list[Act] = []
        for act in reversed(self._known):
            if len(found) == limit:
                break
            if act.number < before and allowed(act.queue):
                found.append(act)
        return found

    def close(self) -> None:
        self._thread.shutdown(wait=True)

    def _begin(self) -> None:
        batch, self._pending = self._pending, []
        self._is_writing = True
        last = self._known[-1].number if self._known else 0
        for number, (act, _) in enumerate(batch, last + 1):
            act.number = number
            self._known.append(act)
        lines = b"".join(msgspec.json.encode(act) + b"\n" for act, _ in batch)
        writing = self._thread.submit(self._write, lines)
        writing.add_done_callback(
            lambda done: self._loop.call_soon_threadsafe(
                self._written, batch, done.exception()
            )
        )

    def _written(
        self,
        batch: list[tuple[Act, Callable[[], None]]],
        error: BaseException | None,
    ) -> None:
        self._is_writing = False
        if error is not None:
            self._told.warned("acts not written", error=type(error).__name__)
        for _, then in batch:
            then()
        if self._pending:
            self._begin()

    def _write(self, lines: bytes) -> None:
        path = self._path
        if path.exists() and path.stat().st_size > FILE_MAX:
            path.replace(path.with_suffix(".1.jsonl"))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        if self._is_cut:
            lines = b"\n" + lines
        self._is_cut = True
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
        self._is_cut = False

    def _read(self) -> list[Act]:
        """The newest acts of the files; a line that was cut short is passed over."""
        found: list[Act] = []
        for path in (self._path.with_suffix(".1.jsonl"), self._path):
            try:
                content = path.read_bytes()
            except OSError:
                continue
            self._is_cut = not content.endswith(b"\n")
            for line in content.splitlines()[-REMEMBERED:]:
                try:
                    found.append(msgspec.json.decode(line, type=Act))
                except msgspec.MsgspecError:
                    continue
        return found
