"""What an app needs of a queue, wherever the queue is.

Two ways of asking, blocking and awaited, each with two implementations: a server over
HTTP, and a file of this machine.
"""

from collections.abc import Awaitable, Sequence
from typing import Protocol

from headway.core.config import QueueConfig
from headway.core.cron import Schedule
from headway.core.job import JobSpec
from headway.wire.work import Failure, Leased, Settled


class Port(Protocol):
    """What the code that enqueues asks; each call returns when it is durable."""

    def enqueue(self, queue: str, specs: Sequence[JobSpec]) -> list[str]: ...
    def reply(self, queue: str, reply_key: str, payload: bytes) -> str: ...
    def schedule(self, entry: Schedule) -> None: ...
    def configure(self, config: QueueConfig) -> None: ...
    def close(self) -> None: ...


class AsyncPort(Protocol):
    """The same for asyncio, and what workers ask."""

    def enqueue(self, queue: str, specs: Sequence[JobSpec]) -> Awaitable[list[str]]: ...
    def reply(self, queue: str, reply_key: str, payload: bytes) -> Awaitable[str]: ...
    def schedule(self, entry: Schedule) -> Awaitable[None]: ...
    def configure(self, config: QueueConfig) -> Awaitable[None]: ...
    def lease(
        self,
        queues: Sequence[str],
        most: int,
        *,
        wait_ms: int = 0,
        lease_ms: int | None = None,
        worker: str = "",
    ) -> Awaitable[list[Leased]]: ...
    def ack(self, tokens: Sequence[str]) -> Awaitable[Settled]: ...
    def extend(self, tokens: Sequence[str], lease_ms: int) -> Awaitable[Settled]: ...
    def release(self, tokens: Sequence[str]) -> Awaitable[Settled]: ...
    def nack(self, failures: Sequence[Failure]) -> Awaitable[Settled]: ...
    def wait(
        self,
        token: str,
        reply_key: str,
        timeout_ms: int,
        *,
        is_done_on_reply: bool = False,
    ) -> Awaitable[Settled]: ...
    def close(self) -> Awaitable[None]: ...
