"""Handlers run, live as long as they have to, and are cancelled."""

import asyncio
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.worker.handler import Handler
from tests.server.process import Serve, make_token
from tests.worker.places import PATIENCE_S, Place, is_empty, until, working


@dataclass
class Order:
    number: int
    at: datetime


def test_handlers_get_their_arguments_as_their_hints_say(place: Place) -> None:
    app = headway.App(place.url)
    seen: list[Any] = []

    @app.job(queue="shop", slo="5s", tenant=lambda order, **_: f"t{order.number}")
    def sync(order: Order, *, note: str = "none") -> None:
        seen.append((order, note, headway.current_job().tenant))

    @app.job(queue="shop")
    async def awaited(orders: list[Order]) -> str:
        seen.append(orders)
        return "what is returned completes the job"

    order = Order(7, datetime(2026, 11, 27, 8, tzinfo=UTC))
    sync.enqueue(order)
    sync.options(priority=1, labels={"region": "east"}).enqueue(order, note="gift")
    awaited.enqueue([order, order])
    with working(app):
        until(is_empty(place, "shop"))
    assert sorted(map(repr, seen)) == sorted(
        map(repr, [(order, "none", "t7"), (order, "gift", "t7"), [order, order]])
    )


def test_plain_call_is_the_function_itself(place: Place) -> None:
    app = headway.App(place.url)

    @app.job
    def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    assert double(21) == 42
    assert double.__doc__ == "Twice as much."
    assert double.kind == "double"


def test_awaited_twins_enqueue(place: Place) -> None:
    app = headway.App(place.url)

    @app.job(queue="many")
    def one(number: int) -> None:
        assert number >= 0

    async def enqueued() -> set[str]:
        first = await one.aenqueue(1)
        later = one.options(delay="1h")
        rest = await later.aenqueue_many([(n,) for n in range(1_001)])
        await app.aclose()
        return {first, *rest}

    assert len(asyncio.run(enqueued())) == 1_002
    counts = place.counts("many")
    assert (counts["ready"], counts["scheduled"]) == (1, 1_001)


def test_many_are_enqueued_in_batches(place: Place) -> None:
    app = headway.App(place.url)

    @app.job(queue="many")
    def one(number: int) -> None:
        assert number >= 0

    ids = one.enqueue_many({"number": n} for n in range(2_001))
    app.close()
    assert len(set(ids)) == 2_001
    assert place.counts("many")["ready"] == 2_001


def test_cancelled_job_is_told_by_the_heartbeat(place: Place) -> None:
    app = headway.App(place.url)
    seen: list[str] = []

    @app.job(queue="q")
    async def long() -> None:
        seen.append("started")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    job = long.enqueue()
    with working(app, lease="3s"):
        until(lambda: seen == ["started"])
        place.cancel(job)
        until(is_empty(place, "q"))
    assert seen == ["started", "cancelled"]
    assert place.counts("q")["dead"] == 0


def test_worker_leases_only_what_it_can_start_now(place: Place) -> None:
    app = headway.App(place.url)
    go = threading.Event()
    running: list[int] = []

    @app.job(queue="q")
    def hold(number: int) -> None:
        running.append(number)
        go.wait(PATIENCE_S)

    hold.enqueue_many([(n,) for n in range(10)])
    with working(app, concurrency=3):
        until(lambda: len(running) == 3)
        counts = place.counts("q")
        go.set()
        until(is_empty(place, "q"))
    assert (counts["leased"], counts["ready"]) == (3, 7)
    assert sorted(running) == list(range(10))


@pytest.mark.parametrize("is_blocking_the_loop", [False, True])
def test_lease_never_ends_under_a_live_handler(
    place: Place, is_blocking_the_loop: bool
) -> None:
    """The handler runs until its lease was extended to four times its length."""
    app = headway.App(place.url)
    go = threading.Event()
    attempts: list[int] = []

    def wait() -> None:
        attempts.append(headway.current_job().attempt)
        assert go.wait(PATIENCE_S)

    async def blocking() -> None:
        wait()

    handler: Handler[[], Any] = app.job(queue="q", kind="long")(
        blocking if is_blocking_the_loop else wait
    )
    job = handler.enqueue()
    with working(app, lease="2s"):
        until(lambda: attempts == [1])
        first_ms = place.lease_until_ms(job)
        until(lambda: place.lease_until_ms(job) >= first_ms + 3 * 2_000)
        go.set()
        until(is_empty(place, "q"))
    assert attempts == [1]
    assert place.counts("q")["dead"] == 0


def test_function_that_hides_that_it_is_async_is_awaited(place: Place) -> None:
    app = headway.App(place.url)
    seen: list[int] = []

    async def hidden(number: int) -> None:
        await asyncio.sleep(0)
        seen.append(number)

    @app.job(queue="q")
    def shown(number: int) -> Any:
        return hidden(number)

    shown.enqueue(17)
    with working(app):
        until(is_empty(place, "q"))
    assert seen == [17]


def test_worker_that_is_cancelled_gives_its_jobs_back(place: Place) -> None:
    app = headway.App(place.url)
    started = asyncio.Event()

    @app.job(queue="q")
    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    async def main() -> None:
        await endless.aenqueue()
        worker = asyncio.ensure_future(app.awork(lease="10m"))
        await asyncio.wait_for(started.wait(), PATIENCE_S)
        worker.cancel()
        with pytest.raises(asyncio.CancelledError):
            await worker
        await app.aclose()

    asyncio.run(main())
    counts = place.counts("q")
    assert (counts["ready"], counts["leased"]) == (1, 0)


def test_worker_that_is_refused_says_so(tmp_path: Path, serve: Serve) -> None:
    make_token(tmp_path / "data", "somebody", "work:*")
    with headway.App(serve().address) as app:

        @app.job(queue="q")
        def never() -> None:
            raise AssertionError

        with pytest.raises(headway.RuleBroken) as refused:
            app.work()
    assert refused.value.code == "unauthorized"
