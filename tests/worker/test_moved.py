"""Retry logic that lets a job go on in another queue."""

from typing import Any

import headway
from tests.worker.places import Place, is_empty, until, working


def test_a_job_goes_on_in_the_queue_that_its_logic_names(place: Place) -> None:
    app = headway.App(place.url)
    seen: list[tuple[str, str, int, str]] = []

    def logic(job: Any, error: BaseException, attempt: int) -> Any:
        return headway.Retry(queue="slow", payload={"route": "backup"})

    def work(route: str = "main") -> None:
        job = headway.current_job()
        seen.append((job.queue, route, job.attempt, job.tenant))
        if job.queue == "quick":
            raise ValueError("too much for here")

    quick = app.job(queue="quick", kind="work", retry=logic, tenant="acme")(work)
    app.job(queue="slow", kind="work")(work)
    app.configure(headway.QueueConfig(name="quick"))
    app.configure(headway.QueueConfig(name="slow"))
    quick.enqueue()
    with working(app):
        until(lambda: len(seen) == 2)
        until(is_empty(place, "quick"))
        until(is_empty(place, "slow"))
    assert seen == [("quick", "main", 1, "acme"), ("slow", "backup", 1, "acme")]
    assert place.dead("quick") == []
    app.close()


def test_a_queue_that_refuses_it_is_a_failure(place: Place) -> None:
    app = headway.App(place.url)

    def logic(job: Any, error: BaseException, attempt: int) -> Any:
        return headway.Retry(queue="full")

    def work() -> None:
        raise ValueError("no")

    job = app.job(queue="quick", retry=logic, attempts=1)(work)
    app.configure(headway.QueueConfig(name="quick"))
    app.configure(headway.QueueConfig(name="full", max_length=1))
    app.job(queue="full", kind="other")(work).enqueue()
    job.enqueue()
    with working(app, queues=("quick",)):
        until(lambda: len(place.dead("quick")) == 1)
    (dead,) = place.dead("quick")
    assert "full" in dead.text
    app.close()
