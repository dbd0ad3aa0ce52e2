"""The load generator for machines without a C compiler: the modes, options and report of
`load.c`, on asyncio. It takes several times the CPU, which the server then lacks.
"""

import argparse
import asyncio
import itertools
import json
import re
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any

KINDS = {"enqueue": 201, "lease": 200, "ack": 200}
TOKEN = re.compile(rb'"token": ?("[^"]*"|\d+)')
STAMP = re.compile(rb"sent@(\d+)")
SLOW_BATCHES, SLOW_LEASES = 24, 12


class Closed(Exception):
    """The server has closed the connection."""


class Load:
    """One run: its options, what it counts, and the requests it makes."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.counts: Counter[str] = Counter()
        self.samples: dict[str, list[float]] = defaultdict(list)
        self.first_error = ""
        self.done = asyncio.Event()
        self.forget()

    def forget(self) -> None:
        """The warm-up does not count."""
        kept = {name: self.counts[name] for name in ("errors", "connects", "drops")}
        self.counts = Counter(kept)
        self.samples.clear()
        self.began_s, self.cpu_s = time.perf_counter(), cpu_s()

    def head(self, path: str, framing: str) -> bytes:
        token = self.options.token
        bearer = f"Authorization: Bearer {token}\r\n" if token else ""
        return (
            f"POST {path} HTTP/1.1\r\nHost: {self.options.host}:{self.options.port}\r\n"
            f"Content-Type: application/json\r\n{bearer}{framing}\r\n"
        ).encode()

    def request(self, path: str, body: bytes) -> bytes:
        return self.head(path, f"Content-Length: {len(body)}\r\n") + body

    def enqueue(self, jobs: int, stamp: str = "") -> bytes:
        payload = stamp.ljust(self.options.payload, "x")
        body = json.dumps([{"payload": payload}] * jobs, separators=(",", ":"))
        return self.request(f"/v1/queues/{self.options.queue}/jobs", body.encode())

    def lease(self, jobs: int) -> bytes:
        wait = self.options.wait
        ask = {
            "queues": [self.options.queue],
            "max": jobs,
            "wait": 0 if wait == "0" else wait,
            "lease": self.options.lease,
            "worker": "w",
        }
        return self.request("/v1/lease", json.dumps(ask).encode())

    def ack(self, tokens: Sequence[bytes]) -> bytes:
        return self.request("/v1/ack", b'{"tokens":[' + b",".join(tokens) + b"]}")

    def fail(self, what: str) -> None:
        self.counts["errors"] += 1
        self.first_error = self.first_error or what[:160]

    async def open(self) -> "Connection":
        connection = Connection(self)
        await connection.open()
        return connection


class Connection:
    """One keep-alive connection."""

    def __init__(self, load: Load) -> None:
        self.load = load

    async def open(self) -> None:
        options = self.load.options
        self.reader, self.writer = await asyncio.open_connection(
            options.host, options.port, limit=1 << 20
        )
        self.load.counts["connects"] += 1

    def close(self) -> None:
        self.writer.close()

    async def ask(self, kind: str, request: bytes, jobs: int = 0) -> bytes:
        """The body of the answer; an error is counted, and has none."""
        began_s = time.perf_counter()
        try:
            self.writer.write(request)
            status, body = await self.answer()
        except (OSError, asyncio.IncompleteReadError):
            self.load.fail(f"connection lost: {kind}")
            self.close()
            raise Closed from None
        self.load.counts["requests"] += 1
        if status != KINDS[kind]:
            self.load.fail(f"{kind} answered {status}: {body[:100]!r}")
            return b""
        took_ms = (time.perf_counter() - began_s) * 1e3
        self.load.samples[kind].append(took_ms)
        self.load.samples["all"].append(took_ms)
        if jobs:
            self.load.counts[f"{kind}d" if kind == "enqueue" else "acked"] += jobs
        return body

    async def answer(self) -> tuple[int, bytes]:
        head = await self.reader.readuntil(b"\r\n\r\n")
        fields = head.lower()
        found = re.search(rb"content-length: *(\d+)", fields)
        if found:
            body = await self.reader.readexactly(int(found[1]))
        elif b"transfer-encoding:" in fields:
            body = await self.chunks()
        else:
            body = b""
        return int(head.split(b" ", 2)[1]), body

    async def chunks(self) -> bytes:
        parts = []
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            parts.append(await self.reader.readexactly(size))
            await self.reader.readexactly(2)
        await self.reader.readexactly(2)
        return b"".join(parts)


async def cycle(load: Load) -> None:
    """Connections that enqueue, lease and ack in turn."""
    options = load.options
    enqueue, lease = load.enqueue(options.batch), load.lease(options.batch)
    promised = itertools.count(0, options.batch)

    async def work() -> None:
        connection = await load.open()
        is_enqueuing = True
        while True:
            is_enqueuing = is_enqueuing and (
                not options.jobs or next(promised) < options.jobs
            )
            if is_enqueuing:
                await connection.ask("enqueue", enqueue, options.batch)
            tokens = TOKEN.findall(await connection.ask("lease", lease))
            load.counts["leased"] += len(tokens)
            if tokens:
                await connection.ask("ack", load.ack(tokens), len(tokens))
            if 0 < options.jobs <= load.counts["acked"]:
                load.done.set()
            if not (tokens or is_enqueuing):
                return

    await together(work() for _ in range(options.connections))


async def latency(load: Load) -> None:
    """An open loop of enqueues, and polls that wait for them."""
    lease = load.lease(10)

    async def poll() -> None:
        connection = await load.open()
        while True:
            body = await connection.ask("lease", lease)
            now_ns = time.monotonic_ns()
            stamps, tokens = STAMP.findall(body), TOKEN.findall(body)
            load.samples["start"] += [(now_ns - int(at)) / 1e6 for at in stamps]
            load.counts["leased"] += len(tokens)
            load.counts["unstamped"] += len(tokens) - len(stamps)
            if tokens:
                await connection.ask("ack", load.ack(tokens), len(tokens))

    async def send(connection: Connection) -> None:
        stamp = f"sent@{time.monotonic_ns():020};"
        with suppress(Closed):
            await connection.ask("enqueue", load.enqueue(1, stamp), 1)
            free.append(connection)

    async def pace() -> None:
        due_s = time.perf_counter()
        async with asyncio.TaskGroup() as sending:
            while True:
                await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
                late_ms = (time.perf_counter() - due_s) * 1e3
                load.samples["send_delay"].append(late_ms)
                sending.create_task(send(free.pop() if free else await load.open()))
                due_s += 1 / load.options.rate

    free: list[Connection] = []
    await together([pace(), *(poll() for _ in range(load.options.pollers))])


async def polls(load: Load) -> None:
    """Long polls on an empty queue, dropped and opened again all at once."""
    lease = load.lease(1)

    async def poll() -> None:
        connection = await load.open()
        try:
            while True:
                await connection.ask("lease", lease)
        finally:
            connection.close()

    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(load.options.every):
                await together(poll() for _ in range(load.options.connections))
        load.counts["drops"] += 1


async def slow(load: Load) -> None:
    """A reader that never reads, and a body that never ends."""
    load.options.payload = 8_000

    async def deaf() -> None:
        connection = await load.open()
        for _ in range(SLOW_BATCHES):
            await connection.ask("enqueue", load.enqueue(50), 50)
        connection.writer.transport.pause_reading()  # type: ignore[attr-defined]
        connection.writer.write(load.lease(100) * SLOW_LEASES)
        await asyncio.Event().wait()

    async def endless() -> None:
        connection = await load.open()
        connection.writer.write(
            load.head("/v1/lease", "Transfer-Encoding: chunked\r\n")
        )
        while True:
            connection.writer.write(b"10\r\n" + b" " * 16 + b"\r\n")
            load.counts["endless_bytes"] += 22
            await asyncio.sleep(0.05)

    await together([deaf(), endless()])


async def together(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """All of them; one that loses its connection ends, and the others go on."""
    for told in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(told, BaseException) and not isinstance(told, Closed | OSError):
            raise told


MODES = {
    "cycle": (cycle, 100, 8),
    "single": (cycle, 1, 64),
    "latency": (latency, 1, 0),
    "polls": (polls, 1, 5_000),
    "slow": (slow, 1, 2),
}
"""What each does, and its batch and connections unless told."""


async def run(options: argparse.Namespace) -> None:
    load = Load(options)
    works = [
        asyncio.create_task(MODES[options.mode][0](load)),
        asyncio.create_task(load.done.wait()),
    ]
    for seconds in filter(None, (options.warmup, options.seconds)):
        load.forget()
        await asyncio.wait(works, timeout=seconds, return_when="FIRST_COMPLETED")
    print(json.dumps(report(load)))
    for work in works:
        work.cancel()
    for told in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(told, Exception):
            raise told


def report(load: Load) -> dict[str, object]:
    took_s = time.perf_counter() - load.began_s
    names = ("enqueued", "leased", "acked", "requests", "errors", "connects")
    more = ("drops", "unstamped", "endless_bytes")
    return {
        "mode": load.options.mode,
        "client": "Python",
        "seconds": took_s,
        **{name: load.counts[name] for name in (*names, *more)},
        "jobs_per_s": load.counts["acked"] / took_s,
        "requests_per_s": load.counts["requests"] / took_s,
        "client_cpu_s": cpu_s() - load.cpu_s,
        "first_error": load.first_error,
        **{
            name: spread(load.samples[name])
            for name in (*KINDS, "all", "start", "send_delay")
        },
    }


def spread(samples: list[float]) -> dict[str, float]:
    ranked, count = sorted(samples), len(samples)
    if not ranked:
        return {"count": 0}
    return {
        "count": count,
        "p50_ms": ranked[count // 2],
        "p99_ms": ranked[count * 99 // 100],
        "max_ms": ranked[-1],
    }


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=MODES)
    for name, value in {"host": "127.0.0.1", "queue": "bench", "token": ""}.items():
        parser.add_argument(f"--{name}", default=value)
    for name, value in {"wait": "1s", "lease": "30s"}.items():
        parser.add_argument(f"--{name}", default=value)
    numbers = {"payload": 200, "pollers": 64, "jobs": 0, "batch": 0, "connections": 0}
    for name, number in {"port": 0, **numbers}.items():
        parser.add_argument(f"--{name}", type=int, default=number)
    for name, real in {
        "seconds": 5.0,
        "warmup": 0.0,
        "rate": 1e3,
        "every": 5.0,
    }.items():
        parser.add_argument(f"--{name}", type=float, default=real)
    options = parser.parse_args()
    _, batch, connections = MODES[options.mode]
    options.batch = options.batch or batch
    options.connections = options.connections or connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, hard), hard))
    asyncio.run(run(options))


if __name__ == "__main__":
    main()
