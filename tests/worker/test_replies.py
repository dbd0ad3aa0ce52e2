"""Jobs that ask somebody outside and go on with the answer; and schedules."""

from dataclasses import dataclass

import pytest

import headway
from headway.core.errors import BadValue
from tests.worker.places import Place, is_empty, until, working


@dataclass
class Receipt:
    status: str
    cents: int


@pytest.mark.parametrize("is_early", [False, True])
def test_job_goes_on_with_its_reply(place: Place, is_early: bool) -> None:
    app = headway.App(place.url)
    seen: list[object] = []

    @app.job(queue="pay")
    def charge(order: int, *, currency: str = "EUR") -> object:
        seen.append(order)
        return headway.wait_for(f"order-{order}", timeout="10m")

    @charge.on_reply
    async def charged(receipt: Receipt, order: int, *, currency: str = "EUR") -> None:
        seen.append((receipt, order, currency, headway.current_job().attempt))

    charge.enqueue(17, currency="CHF")
    with working(app):
        if not is_early:
            until(lambda: place.counts("pay")["waiting"] == 1)
        fate = app.reply("pay", "order-17", Receipt("paid", 990))
        until(lambda: len(seen) == 2)
        until(is_empty(place, "pay"))
        assert app.reply("pay", "order-17", Receipt("paid", 990)) == "repeated"
    if not is_early:
        assert fate == "resolved"
    assert seen == [17, (Receipt("paid", 990), 17, "CHF", 1)]


def test_reply_completes_a_job_without_continuation(place: Place) -> None:
    app = headway.App(place.url)

    @app.job(queue="pay")
    async def charge(order: int) -> object:
        return headway.wait_for(f"order-{order}", timeout="10m")

    charge.enqueue(1)
    with working(app):
        until(lambda: place.counts("pay")["waiting"] == 1)
        assert app.reply("pay", "order-1", None) == "resolved"
        until(is_empty(place, "pay"))
    assert place.counts("pay")["dead"] == 0


def test_reply_that_does_not_fit_is_buried(place: Place) -> None:
    app = headway.App(place.url)

    @app.job(queue="pay")
    def charge(order: int) -> object:
        return headway.wait_for(f"order-{order}", timeout="10m")

    @charge.on_reply
    def charged(receipt: Receipt, order: int) -> None:
        raise AssertionError

    charge.enqueue(1)
    with working(app):
        until(lambda: place.counts("pay")["waiting"] == 1)
        app.reply("pay", "order-1", {"status": 404})
        until(lambda: place.counts("pay")["dead"] == 1)
    (dead,) = place.dead("pay")
    assert dead.text.startswith("the reply does not fit the handler")


def test_two_jobs_that_wait_for_one_key_are_told_apart(place: Place) -> None:
    app = headway.App(place.url)

    @app.job(queue="pay", attempts=1)
    def charge() -> object:
        return headway.wait_for("the same", timeout="10m")

    charge.enqueue()
    charge.enqueue()
    with working(app):
        until(lambda: place.counts("pay")["dead"] == 1)
    (dead,) = place.dead("pay")
    assert dead.text.startswith("it can't wait for a reply")
    assert place.counts("pay")["waiting"] == 1


def test_schedule_enqueues_at_its_ticks(place: Place) -> None:
    app = headway.App(place.url)
    seen: list[str] = []

    @app.job(queue="reports", tenant="acme")
    def report(which: str) -> None:
        seen.append(which)

    app.schedule(report, "daily", cron="* * * * * *", tz="Europe/Berlin", name="often")
    with working(app):
        until(lambda: len(seen) >= 2)
    assert set(seen) == {"daily"}


def test_schedule_with_arguments_that_do_not_fit_is_refused(place: Place) -> None:
    with headway.App(place.url) as app:

        @app.job(queue="reports")
        def report(which: str) -> None:
            raise AssertionError

        with pytest.raises(BadValue, match="does not fit"):
            app.schedule(report, 17, cron="0 6 * * *")
        with pytest.raises(TypeError, match="which"):
            app.schedule(report, cron="0 6 * * *")
