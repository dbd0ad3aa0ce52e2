"""The index of jobs beside the server: fed by a process of its own."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from headway.runtime.errors import RuntimeFailure
from headway.runtime.patience import give_way
from headway.runtime.views import Follow
from headway.server.desk import Desk

READER: Final = "search"
"""The name under which history is kept for the index."""
RESTART_S: Final = 1.0
END_S: Final = 5.0


class Told(msgspec.Struct):
    """What the process says of itself, now and then."""

    next: int
    at_ms: int
    keep: int
    """From this event on history must be kept for it."""


class Indexing:
    """Starts the process that feeds the index, and starts it again when it ends."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        desk: Desk,
        pause_s: float = 0.0,
    ) -> None:
        """It is started after a pause, if there is something more urgent."""
        self._command = (sys.executable, "-m", "headway.search", *arguments)
        self._environment = {**os.environ, **environment}
        self._desk = desk
        self._pause_s = pause_s
        self._process: asyncio.subprocess.Process | None = None
        self.starts = 0

    async def run(self) -> None:
        """Until it is cancelled."""
        try:
            await asyncio.sleep(self._pause_s)
            while True:
                await self._feed()
                await asyncio.sleep(RESTART_S)
        finally:
            await self._end()

    async def _feed(self) -> None:
        self.starts += 1
        self._process = process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=self._environment,
            # A Ctrl-C at the terminal is for the server, which ends it in time.
            start_new_session=True,
        )
        # It does so itself, but only after it was loaded, which is most of its start.
        give_way(process.pid)
        assert process.stdout is not None
        async for line in process.stdout:
            with suppress(msgspec.MsgspecError, RuntimeFailure):
                told = msgspec.json.decode(line, type=Told)
                self._desk.submit(Follow(READER, told.keep))
        await process.wait()

    async def _end(self) -> None:
        """It ends by itself when nobody speaks to it any more."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), END_S)
        except TimeoutError:
            process.kill()
            await process.wait()
