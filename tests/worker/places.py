"""Where a worker's queue can be, seen from outside; and a worker in a thread."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import headway
from headway.worker.running import Worker, WorkerSettings
from tests.server.process import Served

PATIENCE_S = 60.0


class Dead(NamedTuple):
    kind: str
    reason: str
    text: str
    attempt: int


class Place(Protocol):
    """A queue as its operator sees it."""

    url: str

    def counts(self, queue: str) -> dict[str, int]: ...
    def dead(self, queue: str) -> list[Dead]: ...
    def cancel(self, job: str) -> None: ...
    def lease_until_ms(self, job: str) -> int: ...


class ServedPlace:
    """A server in a process of its own."""

    def __init__(self, data: Path, *options: str) -> None:
        self._data = data
        self._options = options

    def __enter__(self) -> Self:
        self.served = Served(self._data, *self._options)
        self.url = self.served.address
        return self

    def __exit__(self, *_: object) -> None:
        self.served.stop()

    def counts(self, queue: str) -> dict[str, int]:
        answer = self.served.ask("GET", f"/v1/queues/{queue}")
        if answer.code == "unknown_queue":
            return dict.fromkeys(("ready", "scheduled", "leased", "waiting", "dead"), 0)
        found: dict[str, int] = answer.json["counts"]
        return found

    def dead(self, queue: str) -> list[Dead]:
        jobs = self.served.ask("GET", f"/v1/queues/{queue}/dead").json["jobs"]
        return [_dead(job["kind"], job["errors"][-1]) for job in jobs]

    def cancel(self, job: str) -> None:
        assert self.served.ask("DELETE", f"/v1/jobs/{job}").status in (200, 202)

    def lease_until_ms(self, job: str) -> int:
        return int(self.served.ask("GET", f"/v1/jobs/{job}").json["lease_until_ms"])


class FilePlace:
    """A file that this process owns."""

    def __init__(self, url: str, queue: headway.Headway) -> None:
        self.url = url
        self._queue = queue

    def counts(self, queue: str) -> dict[str, int]:
        try:
            found = self._queue.counts(queue)
        except headway.RuleBroken:
            return dict.fromkeys(("ready", "scheduled", "leased", "waiting", "dead"), 0)
        return {name: getattr(found, name) for name in found.__struct_fields__}

    def dead(self, queue: str) -> list[Dead]:
        jobs = self._queue.operate.dead(queue).jobs
        return [
            Dead(job.spec.kind, error.reason, error.text, error.attempt)
            for job in jobs
            for error in job.errors[-1:]
        ]

    def cancel(self, job: str) -> None:
        self._queue.cancel(int(job))

    def lease_until_ms(self, job: str) -> int:
        return self._queue.show(int(job)).lease_until_ms


@contextmanager
def file_place(path: Path) -> Iterator[FilePlace]:
    with headway.open(path) as queue:
        yield FilePlace(f"sqlite:///{path}", queue)


def _dead(kind: str, error: dict[str, Any]) -> Dead:
    return Dead(kind, error["reason"], error["text"], error["attempt"])


@contextmanager
def working(app: headway.App, **settings: Any) -> Iterator[Worker]:
    """A worker in a thread; stopped at the end, which has to be soon."""
    worker = app.worker(WorkerSettings(**settings))
    loops: list[asyncio.AbstractEventLoop] = []
    raised: list[BaseException] = []

    async def run() -> None:
        loops.append(asyncio.get_running_loop())
        await worker.run()

    def target() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    try:
        yield worker
    finally:
        until(lambda: bool(loops or raised))
        if thread.is_alive():
            loops[0].call_soon_threadsafe(worker.stop)
        thread.join(PATIENCE_S)
        app.close()
    assert not thread.is_alive(), "the worker does not stop"
    assert raised == []


def until(holds: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Looks until it is so."""
    until_s = time.monotonic() + patience_s
    pause = threading.Event()
    while not holds():
        assert time.monotonic() < until_s, "it does not come about"
        pause.wait(0.02)


def is_empty(place: Place, queue: str) -> Callable[[], bool]:
    """Nothing of the queue is left, dead letters aside."""

    def holds() -> bool:
        counts = place.counts(queue)
        return not any(count for state, count in counts.items() if state != "dead")

    return holds
