"""What an executor does with its share of a claim: what every worker does."""

import os
import sys
from collections.abc import Iterator
from typing import Final, cast

import msgspec
import uvloop

from headway.client.awaited import AsyncClient
from headway.client.port import AsyncPort
from headway.spark.errors import NoHandlers
from headway.spark.fleet.port import Counted, Share, SharePort
from headway.wire.work import Leased
from headway.worker.app import App
from headway.worker.loading import load
from headway.worker.log import start_log
from headway.worker.running import WorkerSettings

_read: Final = msgspec.json.Decoder(list[Leased]).decode


class Errand(msgspec.Struct, frozen=True, kw_only=True):
    """The same for all tasks of a fleet."""

    app: str
    """MODULE:APP, as executors can import it."""
    queue: str
    url: str | None = None
    """None: where the app itself says."""
    token: str | None = None
    concurrency: int = 20
    lease_ms: int = 300_000
    tries: int
    """How often Spark runs a task before it gives up."""

    def port(self, app: App) -> AsyncPort:
        """A fresh way to the queue, for the running loop."""
        if self.url is None:
            return app.ports.for_worker()
        return AsyncClient(self.url, self.token, tries=1)


def run_shares(errand: Errand, shares: Iterator[bytes]) -> Iterator[tuple[int, ...]]:
    """For `mapPartitions`: a share is a list of leased jobs as JSON."""
    from pyspark import TaskContext

    context = TaskContext.get()
    attempt = 0 if context is None else context.attemptNumber()
    for content in shares:
        yield tuple(run_share(errand, _read(content), attempt))


def run_share(errand: Errand, jobs: list[Leased], attempt: int) -> Counted:
    """Runs them all; whatever a handler does harms its own job only.

    But for one that kills its process: its task is tried again, from the other end, so
    that what stands behind it has its turn. At the last try each handler has a process
    of its own, and the one that kills fails like any other.
    """
    start_log(sys.stderr)
    # Processes of handlers find what this one finds.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    try:
        app = load(errand.app)
    except Exception as error:
        raise NoHandlers(f"an executor can't load {errand.app}: {error!r}") from error
    if attempt % 2:
        jobs.reverse()
    share = Share(jobs, errand.lease_ms)
    settings = WorkerSettings(
        queues=(errand.queue,),
        concurrency=errand.concurrency,
        lease=errand.lease_ms,
        until_empty=True,
        is_isolated=attempt + 1 >= errand.tries,
    )

    async def work() -> None:
        def port() -> AsyncPort:
            return cast(AsyncPort, SharePort(errand.port(app), share))

        try:
            await app.worker(settings, port).run()
        finally:
            await app.ports.aclose()

    uvloop.run(work())
    return share.counted
