"""A web app of Starlette's that enqueues jobs, and runs them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import headway
from headway.integrations.starlette import lifespan
from headway.worker.running import WorkerSettings
from tests.worker.places import ServedPlace, until


@asynccontextmanager
async def browsing(web: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """A web app that is up, asked in this process, and ended as its server would."""
    async with web.router.lifespan_context(web) as state:
        transport = httpx.ASGITransport(_with_state(web, state))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://web"
        ) as client:
            yield client


def _with_state(web: Starlette, state: Any) -> Any:
    async def call(scope: Any, receive: Any, send: Any) -> None:
        await web({**scope, "state": dict(state or {})}, receive, send)

    return call


def shop(app: headway.App) -> tuple[list[str], Route]:
    """A page that enqueues a job, and what its handler has seen."""
    sold: list[str] = []

    @app.job(queue="shop")
    async def sell(name: str) -> None:
        sold.append(name)

    async def order(request: Request) -> JSONResponse:
        job = await sell.aenqueue(request.path_params["name"])
        return JSONResponse({"job": job, "state": getattr(request.state, "own", None)})

    return sold, Route("/order/{name}", order, methods=["POST"])


@pytest.mark.parametrize("where", ["server", "file"])
def test_jobs_run_beside_requests_and_the_app_is_closed_at_the_end(
    tmp_path: Path, where: str
) -> None:
    async def main(url: str) -> None:
        app = headway.App(url)
        sold, route = shop(app)
        settings = WorkerSettings(concurrency=2)
        web = Starlette(routes=[route], lifespan=lifespan(app, worker=settings))
        async with browsing(web) as client:
            for name in ("a", "b"):
                answer = await client.post(f"/order/{name}")
                assert answer.status_code == 200
            await asyncio.to_thread(until, lambda: sorted(sold) == ["a", "b"])
        names = {task.get_name() for task in asyncio.all_tasks()}
        assert "headway-worker" not in names

    if where == "file":
        asyncio.run(main(f"sqlite:///{tmp_path}/jobs.db"))
        # Nobody owns the file any more, so another process may.
        with headway.open(tmp_path / "jobs.db") as queue:
            assert queue.counts("shop").ready == 0
    else:
        with ServedPlace(tmp_path / "data") as place:
            asyncio.run(main(place.url))


def test_lifespan_of_ones_own_is_around_it_and_gives_the_state() -> None:
    steps: list[str] = []
    app = headway.App("memory:")
    sold, route = shop(app)

    @asynccontextmanager
    async def own(web: Any) -> AsyncIterator[dict[str, str]]:
        steps.append("opened")
        yield {"own": "state"}
        # What it had opened was there until the last job ended.
        steps.append(f"closed after {sold}")

    async def main() -> None:
        web = Starlette(routes=[route], lifespan=lifespan(app, worker=True, inner=own))
        async with browsing(web) as client:
            answer = await client.post("/order/a")
            assert answer.json()["state"] == "state"
            await asyncio.to_thread(until, lambda: sold == ["a"])

    asyncio.run(main())
    assert steps == ["opened", "closed after ['a']"]


def test_without_a_worker_jobs_are_only_enqueued(tmp_path: Path) -> None:
    app = headway.App(f"sqlite:///{tmp_path}/jobs.db")
    sold, route = shop(app)

    async def main() -> None:
        web = Starlette(routes=[route], lifespan=lifespan(app))
        async with browsing(web) as client:
            await client.post("/order/a")

    asyncio.run(main())
    with headway.open(tmp_path / "jobs.db") as queue:
        assert queue.counts("shop").ready == 1
    assert sold == []


def test_running_job_has_its_grace_when_the_web_app_ends() -> None:
    app = headway.App("memory:")
    steps: list[str] = []

    async def main() -> None:
        started, gate = asyncio.Event(), asyncio.Event()

        @app.job
        async def slow() -> None:
            started.set()
            await gate.wait()
            steps.append("ended")

        web = Starlette(lifespan=lifespan(app, worker=True))
        async with browsing(web):
            await slow.aenqueue()
            await started.wait()
            asyncio.get_running_loop().call_soon(gate.set)
        steps.append("closed")

    asyncio.run(main())
    assert steps == ["ended", "closed"]


def test_worker_that_fails_is_told_and_requests_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = headway.App("memory:")
    _, route = shop(app)

    async def main() -> None:
        web = Starlette(
            routes=[route],
            lifespan=lifespan(app, worker=WorkerSettings(queues=("x" * 129,))),
        )
        async with browsing(web) as client:
            await asyncio.to_thread(until, lambda: "has ended" in caplog.text)
            assert (await client.post("/order/a")).status_code == 200

    asyncio.run(main())
    assert "the worker of the web app has ended" in caplog.text
