"""Searches, timelines and advice, as the command line shows them."""

import json
from itertools import count

import pytest

from tests.cli.conftest import Call

NUMBERS = count()


@pytest.fixture
def queue() -> str:
    return f"found{next(NUMBERS)}"


def test_jobs_are_found_when_the_index_has_them(call: Call, queue: str) -> None:
    put = call("enqueue", queue, "--kind", "mail", "--label", "region=eu", "--json")
    job = json.loads(put.stdout)["jobs"][0]["id"]
    search = ("jobs", "--queue", queue, "--label", "region=eu", "--state", "ready")
    found: list[str] = []
    while not found:
        answer = call(*search, "--json", status=None)
        if answer.exit_code == 0:
            found = [one["id"] for one in json.loads(answer.stdout)["jobs"]]
    assert found == [job]
    assert job in call(*search).stdout
    assert "enqueue" in call("timeline", job).stdout
    assert "no job fits" in call("jobs", "--queue", queue, "--state", "dead").stdout
    assert "needs a queue" in call("jobs", "--tenant", "x", status=2).stderr


def test_workers_are_advised(call: Call, queue: str) -> None:
    call("enqueue", queue)
    assert "workers" in call("autoscale", "--queues", queue).stdout
    told = json.loads(call("autoscale", "--queues", queue, "--json").stdout)
    assert told["workers"] >= 1
    assert "no such queue" in call("autoscale", "--queues", "x", status=2).stderr
