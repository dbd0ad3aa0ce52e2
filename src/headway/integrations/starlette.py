"""Starlette and FastAPI: the app's connections live as long as the web app.

It needs neither of them: a lifespan is a context manager, whoever enters it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, Final

from headway.worker.app import App
from headway.worker.running import Worker, WorkerSettings

log: Final = logging.getLogger("headway.worker")
Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


def lifespan(
    app: App,
    *,
    worker: WorkerSettings | bool = False,
    inner: Lifespan | None = None,
) -> Lifespan:
    """For `Starlette(lifespan=…)` or `FastAPI(lifespan=…)`.

    It closes the app with the web app. With `worker` jobs run beside requests, on the
    same event loop; they have their grace when it ends. `inner` is a lifespan of your
    own: it is entered first and left last, and what it yields is the state.
    """

    @asynccontextmanager
    async def entered(web: Any) -> AsyncIterator[Any]:
        own: AbstractAsyncContextManager[Any] = (
            nullcontext() if inner is None else inner(web)
        )
        async with own as state:
            try:
                async with _working(app, worker):
                    yield state
            finally:
                await app.aclose()

    return entered


@asynccontextmanager
async def _working(app: App, worker: WorkerSettings | bool) -> AsyncIterator[None]:
    if worker is False:
        yield
        return
    settings = WorkerSettings() if worker is True else worker
    running = app.worker(settings)
    task = asyncio.create_task(_run(running), name="headway-worker")
    try:
        yield
    finally:
        running.stop()
        await task


async def _run(worker: Worker) -> None:
    """Requests are served whatever becomes of the worker, but it is told at once."""
    try:
        await worker.run()
    except Exception:
        log.exception("the worker of the web app has ended")
