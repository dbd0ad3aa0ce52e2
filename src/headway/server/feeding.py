"""Takes published writes in: page by page, beside everything else that is asked.

Where to go on is in the record of the write, which every page moves on in its own
commit: a page that was taken in before is known by its place.
"""

import asyncio
import time
from contextlib import suppress
from itertools import accumulate
from typing import Any, Final, Protocol

from headway.core.commands import TakeIn
from headway.core.errors import RuleBroken
from headway.core.spec import JobSpec
from headway.core.write import WriteState, WriteView
from headway.runtime.errors import RuntimeFailure
from headway.runtime.owner import Ask
from headway.runtime.writes import ListWrites
from headway.server.desk import Desk
from headway.server.staging import Broken, Chunk
from headway.server.writes import Writes

PAGE_JOBS: Final = 1_000
"""Jobs of one commit: so long do others wait at most."""
AGAIN_S: Final = 1.0
IDLE_S: Final = 30.0
"""How often it looks for work that nobody has told it of."""
TIDY_S: Final = 600.0


class Watch(Protocol):
    def warned(self, event: str, **fields: object) -> None: ...
    def broken(self, error: Exception) -> None: ...


class Source:
    """One write: its chunks in order, and the jobs of the one that is at hand."""

    def __init__(self, name: str, chunks: list[Chunk]) -> None:
        self.name = name
        self.chunks = chunks
        self._starts = [0, *accumulate(chunk.jobs for chunk in chunks)]
        self._at = -1
        self._specs: list[JobSpec] = []

    def page(self, writes: Writes, taken: int) -> TakeIn:
        """The jobs after so many; reads a file where that is needed. Blocks."""
        at = max(self._at, 0)
        if not self._starts[at] <= taken < self._starts[at + 1] or self._at < 0:
            at = next(
                number
                for number in range(len(self.chunks))
                if self._starts[number] <= taken < self._starts[number + 1]
            )
            self._specs = writes.staging.load(self.name, self.chunks[at])
            self._at = at
        first = taken - self._starts[at]
        specs = self._specs[first : first + PAGE_JOBS]
        return TakeIn(self.name, taken, self.chunks[at].queue, specs)


class Feeding:
    """Brings writes to the owner, each a page in turn."""

    def __init__(self, desk: Desk, writes: Writes, watch: Watch) -> None:
        self._desk = desk
        self._writes = writes
        self._watch = watch
        self._sources: dict[str, Source] = {}
        self._broken: set[str] = set()
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._tidied_s = float("-inf")
        writes.published = self._wake

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            self._woken.clear()
            try:
                await self._tidy()
                await self.drain()
            except RuntimeFailure:
                await asyncio.sleep(AGAIN_S)
                continue
            except Exception as error:
                # Whatever it is: jobs that were accepted may not wait for a restart.
                self._watch.broken(error)
                await asyncio.sleep(IDLE_S)
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), IDLE_S)

    async def drain(self) -> None:
        """Takes in all that was published by now."""
        while await self._round():
            pass

    def _wake(self) -> None:
        """In any thread."""
        self._loop.call_soon_threadsafe(self._woken.set)

    async def _tidy(self) -> None:
        if time.monotonic() - self._tidied_s >= TIDY_S:
            await asyncio.to_thread(self._writes.tidy)
            self._tidied_s = time.monotonic()

    async def _round(self) -> bool:
        """A page of each write; False when there is none left."""
        found = await self._answer(ListWrites())
        running = [one for one in found.writes if one.id not in self._broken]
        for write in running:
            try:
                await self._feed(write)
            except Broken as broken:
                # Jobs that were accepted, and can't be read: somebody has to look.
                self._broken.add(write.id)
                self._watch.warned("write stuck", write=write.id, why=str(broken))
        return bool(running)

    async def _feed(self, write: WriteView) -> None:
        """Some pages in a row; then it is another's turn."""
        source = self._sources.get(write.id)
        if source is None:
            sealed = self._writes.staging.sealed
            chunks = await asyncio.to_thread(sealed, write.id, write.digest)
            source = self._sources[write.id] = Source(write.id, chunks)
        for _ in range(10):
            page = await asyncio.to_thread(source.page, self._writes, write.taken)
            write = await self._answer(page)
            if write.state is WriteState.TAKEN_IN:
                del self._sources[write.id]
                await asyncio.to_thread(self._writes.taken_in, write.id)
                return

    async def _answer(self, ask: Ask) -> Any:
        answer = await asyncio.wrap_future(self._desk.submit(ask))
        if isinstance(answer, RuleBroken):
            raise answer
        return answer
