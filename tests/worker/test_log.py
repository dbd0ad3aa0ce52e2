"""What worker processes write to their log: JSON lines that name the job."""

import json
import logging
import os
import pty
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import headway
from headway import testing
from headway.core.spec import JobSpec
from headway.wire.work import Leased
from headway.worker.log import JobFields, JsonLines, TextLines
from tests.server.process import command
from tests.worker import handlers
from tests.worker.places import PATIENCE_S, FilePlace, file_place, is_empty, until


def worker(place: FilePlace, stderr: Any) -> "subprocess.Popen[bytes]":
    arguments = command("worker", "tests.worker.handlers:app", "--queues", "talk")
    variables = {**os.environ, "TEST_URL": place.url}
    return subprocess.Popen(
        arguments, env=variables, stderr=stderr, stdout=subprocess.DEVNULL
    )


def talked(place: FilePlace, stderr: Any) -> None:
    """A worker that has run two jobs, one of which failed."""
    handler = handlers.talk
    with headway.App(place.url) as app:
        specs = [handler.spec((text,), {}) for text in ("good", "bad")]
        app.ports.blocking().enqueue("talk", specs)
    process = worker(place, stderr)
    try:
        until(lambda: place.counts("talk")["dead"] == 1)
        until(is_empty(place, "talk"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()


def test_log_that_nobody_watches_is_json_and_names_the_job(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with file_place(tmp_path / "jobs.db") as place, log.open("wb") as stderr:
        talked(place, stderr)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    events = [line["event"] for line in lines]
    assert events[0] == "the worker starts"
    assert events[-1] == "the worker has ended"
    said = {line["event"]: line for line in lines if line["logger"] == "shop"}
    good, bad = said["said good"], said["said bad"]
    assert (good["kind"], good["queue"], good["attempt"]) == ("talk", "talk", 1)
    assert (good["length"], good["level"]) == (4, "info")
    assert good["job"] != bad["job"]
    (failed,) = [line for line in lines if line["event"].startswith("an attempt")]
    assert failed["event"] == "an attempt failed: ValueError: as it was told"
    assert (failed["job"], failed["level"]) == (bad["job"], "warning")


def test_log_at_a_terminal_is_text_and_names_the_job(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        with file_place(tmp_path / "jobs.db") as place:
            talked(place, theirs)
    finally:
        os.close(theirs)
    text = b""
    with suppress(OSError):  # A terminal that nobody holds any more.
        while chunk := os.read(ours, 65_536):
            text += chunk
    os.close(ours)
    (line,) = [line for line in text.decode().splitlines() if "said good" in line]
    assert " INFO shop: [talk " in line
    assert line.endswith(" #1] said good")


def test_job_that_can_not_be_run_is_told(caplog: pytest.LogCaptureFixture) -> None:
    app = headway.App("memory:")

    @app.job(queue="q", kind="work")
    def work(number: int) -> None:
        raise AssertionError

    with testing.in_memory(app):
        put = app.ports.blocking().enqueue
        put("q", [JobSpec(kind="other", payload=b"{}", is_json=True)])
        put("q", [JobSpec(kind="work", payload=b"{}", is_json=True)])
        app.work(until_empty=True)
    told = {
        (record.levelname, vars(record)["of"].kind, "can't be run" in record.message)
        for record in caplog.records
        if record.name == "headway.worker"
    }
    assert told == {("ERROR", "other", True), ("ERROR", "work", True)}


def test_line_is_one_line_and_keeps_its_own_fields() -> None:
    record = logging.LogRecord("shop", 30, "", 0, "two\nlines \x7f", (), None)
    record.level = "mine"
    record.thing = object
    written = JsonLines().format(record)
    assert "\n" not in written
    assert "\x7f" not in written
    told = json.loads(written)
    assert (told["event"], told["level"]) == ("two\nlines \x7f", "warning")
    assert told["thing"] == str(object)


def test_traceback_is_in_the_line() -> None:
    try:
        raise KeyError("gone")
    except KeyError as error:
        details = (KeyError, error, error.__traceback__)
    record = logging.LogRecord("shop", 40, "", 0, "broken", (), details)
    told = json.loads(JsonLines().format(record))
    assert told["error"].startswith("Traceback")
    assert "KeyError: 'gone'" in told["error"]


def test_fields_of_the_job_are_there_for_handlers_of_ones_own() -> None:
    seen: list[logging.LogRecord] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record)

    keeping = Keeping()
    keeping.addFilter(JobFields())
    logger = logging.Logger("own")
    logger.addHandler(keeping)
    app = headway.App("memory:")

    @app.job
    def sync() -> None:
        logger.info("here")

    @app.job(kind="awaited")
    async def awaited() -> None:
        logger.info("here")

    with testing.in_memory(app):
        ids = {sync.enqueue(), awaited.enqueue()}
        app.work(until_empty=True)
    logger.info("outside")
    inside, outside = seen[:2], seen[2]
    assert {vars(record)["job"] for record in inside} == ids
    assert {vars(record)["kind"] for record in inside} == {"sync", "awaited"}
    assert vars(outside)["job"] == ""
    assert "[" not in TextLines().format(outside)


def test_job_that_is_given_goes_before_the_one_that_runs() -> None:
    job = Leased(
        id="j",
        token="t",
        queue="q",
        kind="k",
        tenant="",
        attempt=2,
        attempts_max=5,
        lease_until_ms=0,
    )
    record = logging.LogRecord("headway.worker", 30, "", 0, "lost", (), None)
    record.of = job
    JobFields().filter(record)
    told = json.loads(JsonLines().format(record))
    assert (told["job"], told["kind"], told["attempt"]) == ("j", "k", 2)
    assert "of" not in told
