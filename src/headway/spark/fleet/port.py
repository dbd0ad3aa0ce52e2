"""A task's share of a claim, as a worker sees it: a queue that has these jobs only."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from headway.client.port import AsyncPort
from headway.wire.work import Failure, Leased, ResultBody, Settled
from headway.worker.settling import LOST


class Counted(NamedTuple):
    """What became of jobs; all that a task tells its driver."""

    done: int = 0
    failed: int = 0
    waiting: int = 0
    """They wait for replies."""
    gone: int = 0
    """No longer ours at their turn: an earlier try has settled them, or the lease is
    over."""

    def plus(self, other: "Counted") -> "Counted":
        return Counted(*(mine + more for mine, more in zip(self, other, strict=True)))


class Share:
    """Jobs that have not been started yet, and what became of the others."""

    def __init__(self, jobs: list[Leased], lease_ms: int) -> None:
        self.jobs = jobs
        self.lease_ms = lease_ms
        self.counted = Counted()

    def count(self, **more: int) -> None:
        self.counted = self.counted.plus(Counted(**more))


class SharePort:
    """The server's own port, but leases are those of the share.

    A job is handed out if its lease can be extended: so a task that is run again leaves
    alone what was settled before.
    """

    def __init__(self, port: AsyncPort, share: Share) -> None:
        self._port = port
        self._share = share

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    async def lease(self, _: Sequence[str], most: int, **__: Any) -> list[Leased]:
        share = self._share
        while share.jobs:
            some = share.jobs[:most]
            tokens = [job.token for job in some]
            got = await self._port.extend(tokens, share.lease_ms)
            # Not before the answer: without one they are asked for again.
            del share.jobs[:most]
            share.count(gone=len(got.stale))
            if got.cancelled:
                await self._drop(got.cancelled)
            over = {*got.stale, *got.cancelled}
            if ours := [job for job in some if job.token not in over]:
                return ours
        return []

    async def ack(
        self, tokens: Sequence[str], results: Mapping[str, ResultBody] | None = None
    ) -> Settled:
        got = await self._port.ack(tokens, results)
        self._share.count(done=len(tokens) - len(got.stale))
        return got

    async def nack(self, failures: Sequence[Failure]) -> Settled:
        got = await self._port.nack(failures)
        self._share.count(failed=len(failures) - len(got.stale))
        return got

    async def wait(self, token: str, *args: Any, **kwargs: Any) -> Settled:
        got = await self._port.wait(token, *args, **kwargs)
        self._share.count(waiting=1 - len(got.stale))
        return got

    async def _drop(self, tokens: list[str]) -> None:
        """They were cancelled before they began."""
        with suppress(*LOST):
            await self.nack([Failure(token, "cancelled") for token in tokens])
