"""A write that is killed at every step that changes a file, and then repeated.

Run as a process: it forks one child a step, which dies there by SIGKILL, and another that
sends the same again. It prints what became of each.
"""

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headway.core.spec import JobSpec
from headway.runtime.door import Door
from headway.runtime.verify import problems
from headway.runtime.views import Count
from headway.server.desk import Desk
from headway.server.feeding import Feeding
from headway.server.staging import Place
from headway.server.writes import Writes
from headway.store.sqlite.store import SqliteStore
from headway.wire.writes import Publication, Winner

CHUNKS = 3
JOBS = 1_500
"""Of one chunk: two pages."""
NAMES = ("mail", "web", "mail")


class Silent:
    def warned(self, event: str, **fields: object) -> None:
        raise AssertionError(f"{event}: {fields}")

    def broken(self, error: Exception) -> None:
        raise error


class Fuse:
    """Kills this process at its nth step, before or after what the step does."""

    def __init__(self, at: int) -> None:
        self._left = at
        self.steps = 0

    def wrap(self, owner: Any, name: str) -> None:
        real: Callable[..., Any] = getattr(owner, name)

        def step(*args: Any, **kwargs: Any) -> Any:
            self._burn()
            result = real(*args, **kwargs)
            self._burn()
            return result

        setattr(owner, name, step)

    def _burn(self) -> None:
        self.steps += 1
        self._left -= 1
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)


async def write(folder: Path) -> dict[str, Any]:
    """The whole of it, as a driver that was started again does it."""
    door = Door(folder / "headway.db")
    try:
        desk = Desk(door, asyncio.get_running_loop())
        writes = Writes(folder / "writes", desk)
        feeding = Feeding(desk, writes, Silent())
        await asyncio.to_thread(writes.tidy)
        await asyncio.to_thread(_send, writes)
        await feeding.drain()
        shown = await asyncio.to_thread(writes.show, "w", lambda queues: None)
        counts = Counter[str]()
        for name in sorted(set(NAMES)):
            found = await asyncio.wrap_future(desk.submit(Count(name)))
            counts[name] = found.ready
        left = [str(place) for place in (folder / "writes").rglob("*")]
    finally:
        door.close()
    return {
        "state": shown.state,
        "taken": shown.taken,
        "counts": counts,
        "left": left,
        "problems": problems(folder / "headway.db"),
    }


def _send(writes: Writes) -> None:
    for number, queue in enumerate(NAMES):
        for attempt in ("lost", "won"):
            specs = [JobSpec(kind=f"{number}.{one}") for one in range(JOBS)]
            writes.put("w", Place(number, attempt, 0), queue, specs)
    winners = [Winner(number, "won", 1) for number in range(CHUNKS)]
    asked = Publication(winners=winners, count=CHUNKS * JOBS)
    writes.publish("w", asked, lambda queues: None)


def die(folder: Path, at: int) -> int:
    """The child: how many steps it has made, if it lives to tell."""
    fuse = Fuse(at)
    fuse.wrap(os, "fsync")
    fuse.wrap(Path, "replace")
    fuse.wrap(Path, "unlink")
    fuse.wrap(SqliteStore, "commit")
    asyncio.run(write(folder))
    return fuse.steps


def forked(work: Callable[[], object], told: Path | None = None) -> int:
    """What became of a child that does this."""
    child = os.fork()
    if not child:
        try:
            result = work()
            if told is not None:
                told.write_text(json.dumps(result))
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1]


def story(folder: Path, at: int) -> dict[str, Any]:
    folder.mkdir()
    ended = forked(lambda: die(folder, at))
    forked(lambda: asyncio.run(write(folder)), folder / "told")
    told = json.loads((folder / "told").read_text())
    return {"at": at, "ended": ended, **told}


def main(root: Path, every: int) -> None:
    at, ended = 1, signal.SIGKILL.value
    while ended:
        told = story(root / str(at), at)
        sys.stdout.write(json.dumps(told) + "\n")
        ended = told["ended"]
        at += every


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
