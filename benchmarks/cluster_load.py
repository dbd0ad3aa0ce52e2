"""Steady work for a cluster: jobs are sent to some queues, and started by workers.

Senders and workers know all nodes, and stay with one that answers. What counts is how
long a job waits from before it is sent until a worker has it.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple

import msgspec

from headway.client.awaited import AsyncClient
from headway.client.errors import Unreachable
from headway.core.spec import JobSpec
from headway.wire.work import Leased

TICK_S: Final = 0.02
WAIT_MS: Final = 2_000
_decode: Final = msgspec.json.Decoder(tuple[int, float]).decode


class Start(NamedTuple):
    """A job that a worker was given."""

    queue: str
    sent_s: float
    began_s: float

    @property
    def waited_s(self) -> float:
        return self.began_s - self.sent_s


class Stream(NamedTuple):
    """So many jobs a second, to one queue."""

    queue: str
    per_s: float
    slo_ms: int


class Load:
    """Sends and starts jobs until it is told to end."""

    def __init__(
        self,
        urls: str,
        streams: Sequence[Stream],
        *,
        workers: int = 8,
        most: int = 10,
        run_s: float = 0.0,
    ) -> None:
        """`run_s` is how long each worker is busy with the jobs of a lease."""
        self.starts: list[Start] = []
        self.sent: list[tuple[str, float]] = []
        """Queue and time of each job, whether or not it was started."""
        self._urls = urls
        self._streams = streams
        self._workers = workers
        self._most = most
        self._run_s = run_s
        self._seen: set[int] = set()
        self._number = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._send(stream)) for stream in self._streams]
        tasks += [asyncio.create_task(self._work(n)) for n in range(self._workers)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def between(self, first_s: float, last_s: float) -> list[Start]:
        """Starts of the jobs that were sent in this time."""
        return [start for start in self.starts if first_s <= start.sent_s < last_s]

    async def _send(self, stream: Stream) -> None:
        client = AsyncClient(self._urls)
        # Not all streams in step: that would be bursts.
        due, began_s = -random.random(), time.monotonic()
        on_the_way: set[asyncio.Task[None]] = set()
        try:
            while True:
                wanted = (time.monotonic() - began_s) * stream.per_s
                count = int(wanted - due)
                if count > 0:
                    due += count
                    # A queue that is moved must not hold up the next ones.
                    task = asyncio.create_task(self._enqueue(client, stream, count))
                    on_the_way.add(task)
                    task.add_done_callback(on_the_way.discard)
                await asyncio.sleep(TICK_S)
        finally:
            for task in on_the_way:
                task.cancel()
            await client.close()

    async def _enqueue(self, client: AsyncClient, stream: Stream, count: int) -> None:
        now_s = time.monotonic()
        specs = []
        for _ in range(count):
            self._number += 1
            specs.append(
                JobSpec(
                    kind="k",
                    payload=msgspec.json.encode((self._number, now_s)),
                    is_json=True,
                    slo_ms=stream.slo_ms,
                    idempotency_key=str(self._number),
                )
            )
            self.sent.append((stream.queue, now_s))
        for _ in range(20):
            with suppress(Unreachable):
                await client.enqueue(stream.queue, specs)
                return

    async def _work(self, number: int) -> None:
        client = AsyncClient(self._urls, tries=1)
        queues = [stream.queue for stream in self._streams]
        try:
            while True:
                try:
                    jobs = await client.lease(
                        queues, self._most, wait_ms=WAIT_MS, worker=f"w{number}"
                    )
                except Unreachable:
                    await asyncio.sleep(TICK_S)
                    continue
                now_s = time.monotonic()
                for job in jobs:
                    self._note(job, now_s)
                if jobs and self._run_s:
                    await asyncio.sleep(self._run_s)
                if jobs:
                    with suppress(Unreachable):
                        await client.ack([job.token for job in jobs])
        finally:
            await client.close()

    def _note(self, job: Leased, now_s: float) -> None:
        """A job that comes again has started before."""
        assert isinstance(job.payload, msgspec.Raw)
        number, sent_s = _decode(job.payload)
        if number not in self._seen:
            self._seen.add(number)
            self.starts.append(Start(job.queue, sent_s, now_s))


def p99_ms(starts: Sequence[Start]) -> float:
    waits = sorted(start.waited_s for start in starts)
    return waits[int(len(waits) * 0.99)] * 1e3 if waits else float("nan")
