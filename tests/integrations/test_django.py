"""Django's tasks on Headway: enqueued by Django, run by a worker."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import django
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from django.utils import timezone

import headway
from headway import testing
from tests.server.process import command
from tests.worker.places import PATIENCE_S, ServedPlace, is_empty, until

SETTINGS = "tests.integrations.site.settings"
BACKEND = "headway.integrations.django.HeadwayBackend"


@pytest.fixture(scope="module", autouse=True)
def _site() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_SETTINGS_MODULE", SETTINGS)
        django.setup()
        yield


@pytest.fixture
def tasks() -> Any:
    from tests.integrations.site import tasks

    tasks.done.clear()
    return tasks


@pytest.fixture
def app() -> Iterator[headway.App]:
    """The app of the default backend, on a queue in memory."""
    from headway.integrations import django as integration

    app: headway.App = integration.app
    with testing.in_memory(app):
        yield app


def test_task_goes_from_django_by_a_server_to_a_worker(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    enqueue = (
        "import django; django.setup()\n"
        "from tests.integrations.site import tasks\n"
        "tasks.greet.enqueue('ada', times=2)\n"
        "tasks.send.enqueue(['bob'])\n"
        "print(tasks.count.enqueue().id)"
    )
    with ServedPlace(tmp_path / "data") as place:
        variables = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": SETTINGS,
            "TEST_URL": place.url,
            "TEST_NOTES": str(notes),
        }
        told = subprocess.run(
            [sys.executable, "-c", enqueue],
            env=variables,
            check=True,
            capture_output=True,
            text=True,
        )
        worker = subprocess.Popen(
            command("worker", "headway.integrations.django:app"), env=variables
        )
        try:
            until(lambda: notes.exists() and len(notes.read_text().splitlines()) == 3)
            until(is_empty(place, "default"))
            until(is_empty(place, "mail"))
            worker.terminate()
            assert worker.wait(PATIENCE_S) == 0
        finally:
            worker.kill()
            worker.wait()
        assert place.counts("default")["dead"] == 0
    assert sorted(notes.read_text().splitlines()) == sorted(
        ["greets adaada", "sends to ['bob']", f"{told.stdout.strip()} 1"]
    )


def test_priority_queue_and_time_are_those_of_the_task(
    app: headway.App, tasks: Any
) -> None:
    later = timezone.now() + timedelta(hours=1)
    with testing.recording(app) as recorder:
        tasks.greet.using(priority=-5, run_after=later).enqueue("ada")
        result = tasks.send.enqueue(["bob"])
        plain = tasks.greet.enqueue("eve")
    first, second, third = recorder.jobs
    assert (first.spec.priority, second.spec.priority) == (105, 90)
    assert third.spec.priority == 100
    assert first.spec.run_at_ms == round(later.timestamp() * 1_000)
    assert (first.queue, second.queue) == ("default", "mail")
    assert (result.id, plain.id) == (second.id, third.id)
    assert result.status == "READY"
    assert result.enqueued_at is not None


def test_highest_priority_goes_first(app: headway.App, tasks: Any) -> None:
    for priority in (-50, 0, 50):
        tasks.greet.using(priority=priority).enqueue(f"p{priority}")
    app.work(until_empty=True, concurrency=1)
    assert tasks.done == ["greets p50", "greets p0", "greets p-50"]


def test_run_after_is_kept_and_tasks_can_be_enqueued_by_asyncio(tasks: Any) -> None:
    from headway.integrations import django as integration

    start = datetime(2026, 3, 2, tzinfo=UTC)
    with testing.virtual_time(integration.app, start=start) as queue:
        asyncio.run(
            tasks.greet.using(run_after=start + timedelta(days=1)).aenqueue("a")
        )
        queue.run_for("23h")
        assert tasks.done == []
        queue.drain()
    assert tasks.done == ["greets a"]


def test_failing_task_is_tried_again_and_ends_as_failed(tasks: Any) -> None:
    from headway.integrations import django as integration

    seen: list[Any] = []
    signals: Any = vars(integration)["signals"]

    def started(task_result: Any, **_: Any) -> None:
        seen.append(("started", task_result.attempts))

    def finished(task_result: Any, **_: Any) -> None:
        errors = [error.exception_class for error in task_result.errors]
        seen.append((str(task_result.status), task_result.attempts, errors))

    signals.task_started.connect(started)
    signals.task_finished.connect(finished)
    try:
        with testing.virtual_time(integration.other) as queue:
            result = tasks.fail.using(backend="other").enqueue()
            tasks.greet.using(backend="other").enqueue("ada")
            queue.drain()
            (dead,) = queue.verbs.operate.dead("default").jobs
            assert str(dead.seq) == result.id
            assert dead.spec.slo_ms == 5_000
    finally:
        signals.task_started.disconnect(started)
        signals.task_finished.disconnect(finished)
    assert seen == [
        ("started", 1),
        ("started", 1),
        ("SUCCESSFUL", 1, []),
        ("started", 2),
        ("FAILED", 2, [ValueError]),
    ]
    assert "ValueError: as it should" in dead.errors[-1].text


@pytest.mark.parametrize("path", ["plain", "note", "nothing"])
def test_only_tasks_are_run(app: headway.App, tasks: Any, path: str) -> None:
    from headway.integrations.django import KIND

    handler = app.handlers["default", KIND]
    bound = handler.options(attempts=1)
    bound.enqueue(f"tests.integrations.site.tasks.{path}", [], {})
    bound.enqueue("os.getcwd", [], {})
    app.work(until_empty=True)
    link = app.ports.blocking().link  # type: ignore[attr-defined]
    texts = [
        job.errors[-1].text
        for job in headway.Headway(link).operate.dead("default").jobs
    ]
    assert len(texts) == 2
    assert "os.getcwd is no task" in "".join(texts)
    assert tasks.done == []


def test_backend_says_what_it_can_and_cannot_do(app: headway.App, tasks: Any) -> None:
    backend = tasks.greet.get_backend()
    assert backend.supports_defer
    assert backend.supports_priority
    assert backend.supports_async_task
    assert not backend.supports_get_result
    with pytest.raises(RuntimeError):  # NotImplemented... of Django's own base
        backend.get_result("1")
    with pytest.raises(Exception, match="not valid"):
        tasks.greet.using(queue_name="elsewhere")


def test_arguments_that_are_not_json_are_refused(app: headway.App, tasks: Any) -> None:
    with pytest.raises(TypeError):
        tasks.greet.enqueue(object())


@pytest.mark.parametrize(
    "params",
    [{}, {"OPTIONS": {"url": "memory:", "ulr": 1}}],
)
def test_wrong_settings_are_told(params: dict[str, Any], tasks: Any) -> None:
    settings = {"default": {"BACKEND": BACKEND, **params}}
    with (
        override_settings(TASKS=settings),
        pytest.raises(ImproperlyConfigured, match="needs a url"),
    ):
        tasks.greet.get_backend()


def test_worker_is_told_of_an_alias_that_is_not_there(tmp_path: Path) -> None:
    run = subprocess.run(
        command("worker", "headway.integrations.django:nothing"),
        env={**os.environ, "DJANGO_SETTINGS_MODULE": SETTINGS},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode != 0
    assert "nothing" in run.stderr
