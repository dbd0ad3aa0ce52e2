"""The queue in a file, asked by a process that may be gone a moment later."""

import asyncio
from pathlib import Path

import headway

TURNS = 60


def test_jobs_granted_to_a_cancelled_lease_are_given_back_before_the_end(
    tmp_path: Path,
) -> None:
    """However the two race, a port that is closed leaves nothing in nobody's hands."""
    path = tmp_path / "jobs.db"

    async def race(spins: int) -> None:
        app = headway.App(f"sqlite:///{path}")
        port = app.ports.for_worker()
        asked = port.lease(["q"], 1, wait_ms=60_000, lease_ms=600_000)
        lease = asyncio.ensure_future(asked)
        for _ in range(spins):
            await asyncio.sleep(0)
        lease.cancel()
        (done,) = await asyncio.gather(lease, return_exceptions=True)
        if not isinstance(done, BaseException):
            await port.release([job.token for job in done])
        await port.close()
        app.close()

    with headway.open(path) as queue:
        queue.configure(headway.QueueConfig(name="q"))
        queue.enqueue("q", b"{}")
        for turn in range(TURNS):
            asyncio.run(race(turn % 20))
            counts = queue.counts("q")
            assert (counts.ready, counts.leased) == (1, 0)
