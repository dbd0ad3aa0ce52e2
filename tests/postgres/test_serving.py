"""A server whose jobs are in a database, as its users have it."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import shared
from tests.server.process import PATIENCE_S, Served, command


class Servers:
    """Servers of one partition; each has a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.address = shared.cluster().address
        self.partition = shared.new_partition()
        self._folder = folder
        self._stack = ExitStack()

    def start(self, name: str = "data", address: str = "") -> Served:
        environment = {
            "HEADWAY_STORE": address or self.address,
            "PARTITION": self.partition,
        }
        served = Served(self._folder / name, environment=environment)
        self._stack.callback(served.stop)
        return served

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    made = Servers(tmp_path)
    yield made
    made.close()


def enqueue(served: Served, count: int, queue: str = "default") -> list[str]:
    jobs = [{"kind": "mail", "payload": number} for number in range(count)]
    answer = served.ask("POST", f"/v1/queues/{queue}/jobs", jobs)
    assert answer.status in (200, 201), answer
    return [job["id"] for job in answer.json["jobs"]]


def lease(served: Served, most: int) -> list[dict[str, Any]]:
    answer = served.ask("POST", "/v1/lease", {"max": most, "wait": "10s"})
    assert answer.status == 200, answer
    jobs: list[dict[str, Any]] = answer.json["jobs"]
    return jobs


def ack(served: Served, jobs: list[dict[str, Any]]) -> None:
    answer = served.ask("POST", "/v1/ack", {"tokens": [job["token"] for job in jobs]})
    assert answer.status == 200, answer


def test_jobs_are_served_from_a_database_and_outlive_their_server(
    servers: Servers,
) -> None:
    first = servers.start()
    ids = enqueue(first, 20)
    ack(first, lease(first, 5))
    assert first.stop() == 0
    again = servers.start()
    assert {job["id"] for job in lease(again, 20)} == set(ids[5:])
    folder = {path.name for path in again.data.iterdir()}
    assert "headway.db" not in folder


def test_jobs_in_a_database_are_found_and_their_history_is_read(
    servers: Servers,
) -> None:
    served = servers.start()
    ids = enqueue(served, 3)
    until_s = time.monotonic() + PATIENCE_S
    while len(served.ask("GET", "/v1/jobs?queue=default").json.get("jobs", [])) < 3:
        assert time.monotonic() < until_s
    assert served.ask("GET", f"/v1/jobs/{ids[0]}/timeline").status == 200
    about = served.ask("GET", "/v1/history").json
    assert about["partitions"][0]["next"] > 3
    assert "headway_store_bytes" in served.ask("GET", "/metrics").body.decode()


def test_whoever_starts_last_serves_and_the_one_before_stops(servers: Servers) -> None:
    first = servers.start("one")
    enqueue(first, 4)
    second = servers.start("two")
    assert first.wait() == 2
    assert "another server has taken the partition over" in first.log()
    assert len(lease(second, 10)) == 4


def test_an_address_is_told_to_nobody(servers: Servers, tmp_path: Path) -> None:
    """Not to the process list, not to the log, not in a message."""
    secret = "hunter-canary"
    address = servers.address.replace("postgres@", f"postgres:{secret}@")
    served = servers.start(address=address)
    enqueue(served, 1)
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes())
        except OSError:
            continue
    assert not any(secret.encode() in line for line in lines)
    assert served.stop() == 0
    assert secret not in served.log()
    refused = subprocess.run(
        command("serve", "--data", str(tmp_path / "x"), "--store", address),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert refused.returncode == 2
    assert "a password on a command line" in refused.stderr
    assert secret not in refused.stderr


def test_a_database_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    address = tmp_path / "address"
    address.write_text("postgresql://somebody:secret@127.0.0.1:1/none\n")
    refused = subprocess.run(
        command("serve", "--data", str(tmp_path / "x"), "--store-file", str(address)),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert refused.returncode == 2
    assert "headway: the database can't be reached" in refused.stderr
    assert "secret" not in refused.stderr
    assert "Traceback" not in refused.stderr


def test_tools_for_files_say_what_to_use_for_a_database(tmp_path: Path) -> None:
    for words in (["verify"], ["backup"]):
        rest = [str(tmp_path / "copy.db")] if words == ["backup"] else []
        told = subprocess.run(
            command(*words, "postgresql://db/jobs", *rest),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert told.returncode == 2
        assert "by its own tools" in told.stderr


def test_migrate_tells_what_it_did(tmp_path: Path) -> None:
    address = shared.cluster().address
    told = subprocess.run(
        command("migrate", "--store", address, "--json"),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    done = json.loads(told.stdout)
    assert done["before"] == done["after"] >= 1
