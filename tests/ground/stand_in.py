"""A queue in memory that speaks as much HTTP as the load client asks for.

It stands in for the server where the client itself is to be tested, and says at
`GET /` what it has seen.
"""

import asyncio
import json
import sys
from collections import Counter, deque
from typing import Any


class Queue:
    """Jobs that wait, jobs that are leased, and everybody who waits for one."""

    def __init__(self) -> None:
        self.ready: dict[str, deque[str]] = {}
        self.leased: set[str] = set()
        self.seen: Counter[str] = Counter()
        self.came = asyncio.Condition()

    async def enqueue(self, name: str, jobs: list[dict[str, str]]) -> dict[str, Any]:
        self.ready.setdefault(name, deque()).extend(job["payload"] for job in jobs)
        self.seen["enqueued"] += len(jobs)
        self.seen["bytes"] += sum(len(job["payload"]) for job in jobs)
        async with self.came:
            self.came.notify_all()
        return {"jobs": [{"id": "1"} for _ in jobs]}

    async def lease(self, ask: dict[str, Any]) -> dict[str, Any]:
        (name,) = ask["queues"]
        ready = self.ready.setdefault(name, deque())
        wait_s = float(str(ask["wait"]).removesuffix("s"))
        try:
            async with asyncio.timeout(wait_s), self.came:
                await self.came.wait_for(lambda: bool(ready))
        except TimeoutError:
            self.seen["empty"] += 1
        jobs: list[dict[str, str]] = []
        while ready and len(jobs) < ask["max"]:
            self.seen["leased"] += 1
            token = f"t-{self.seen['leased']}"
            self.leased.add(token)
            payload = ready.popleft()
            jobs.append({"id": token[2:], "token": token, "payload": payload})
        return {"jobs": jobs}

    async def ack(self, ask: dict[str, Any]) -> dict[str, Any]:
        for token in ask["tokens"]:
            self.leased.remove(token)
        self.seen["acked"] += len(ask["tokens"])
        return {"acked": len(ask["tokens"])}


async def answer(queue: Queue, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
    if path == "/":
        return 200, dict(queue.seen)
    ask = json.loads(body)
    if "--refusing" in sys.argv:
        return 503, {"error": 'no "jobs" now'}
    if path == "/v1/lease":
        return 200, await queue.lease(ask)
    if path == "/v1/ack":
        return 200, await queue.ack(ask)
    return 201, await queue.enqueue(path.split("/")[3], ask)


async def serve(
    queue: Queue,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    is_chunked: bool,
) -> None:
    """One connection, request after request."""
    queue.seen["connections"] += 1
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:-2])
            queue.seen[f"token {fields.get('Authorization')}"] += 1
            body = await reader.readexactly(int(fields.get("Content-Length", "0")))
            if fields.get("Transfer-Encoding") == "chunked":
                queue.seen["endless"] += 1
                while await reader.read(65_536):
                    pass
                return
            status, told = await answer(queue, head.split(" ")[1], body)
            text = json.dumps(told, separators=(",", ":")).encode()
            size = f"Content-Length: {len(text)}\r\n\r\n".encode()
            if is_chunked:
                size = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(text)
                text += b"\r\n0\r\n\r\n"
            writer.write(f"HTTP/1.1 {status} OK\r\n".encode() + size + text)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main(is_chunked: bool) -> None:
    queue = Queue()

    async def accept(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await serve(queue, reader, writer, is_chunked)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, backlog=4096)
    port = server.sockets[0].getsockname()[1]
    sys.stdout.write(f"headway listens on http://127.0.0.1:{port}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main("--chunked" in sys.argv))
    except KeyboardInterrupt:
        sys.exit(130)
