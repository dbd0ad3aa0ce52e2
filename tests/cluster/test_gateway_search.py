"""Searches over several partitions, by their real indexes."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.gated import Gated, gated
from tests.server.process import PATIENCE_S


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Gated]:
    with gated(tmp_path) as cluster, ExitStack() as stack:
        for partition in ("p1", "p2"):
            folder = tmp_path / partition
            command = [sys.executable, "-m", "headway.search"]
            command += [str(folder / "headway.db"), str(folder / "index.db")]
            pipe = subprocess.PIPE
            # It ends when its input does.
            stack.enter_context(
                subprocess.Popen(command, stdin=pipe, stdout=subprocess.DEVNULL)
            )
        yield cluster


def _until_found(nodes: Gated, path: str, count: int) -> list[str]:
    until_s = time.monotonic() + PATIENCE_S
    while True:
        answer = nodes["a"].ask("GET", path)
        if answer.status == 200 and len(answer.json["jobs"]) == count:
            return [job["id"] for job in answer.json["jobs"]]
        assert answer.status != 400, answer
        assert time.monotonic() < until_s, answer


def test_a_search_finds_jobs_of_all_partitions_once(nodes: Gated) -> None:
    nodes.place(near="p1", far="p2")
    ids = []
    for _ in range(3):
        ids += nodes["a"].enqueue("near", {})
        ids += nodes["b"].enqueue("far", {})
    newest = _until_found(nodes, "/v1/jobs?by=enqueued", 6)
    assert sorted(newest) == sorted(ids)
    for node in (nodes["a"], nodes["b"]):
        found: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            path = f"/v1/jobs?by=enqueued&limit=2&order=oldest{cursor}"
            answer = node.ask("GET", path)
            assert answer.status == 200, answer
            page = answer.json
            found += [job["id"] for job in page["jobs"]]
            cursor = None if page["next"] is None else f"&cursor={page['next']}"
        assert sorted(found) == sorted(ids)
        assert [job for job in found if job.startswith("p2_")] == ids[1::2]
        far = node.ask("GET", "/v1/jobs?by=enqueued&queue=far").json["jobs"]
        assert len(far) == 3
        uses = node.ask("GET", "/v1/queues/far/counts").json["lanes"]
        assert uses[0]["states"]["ready"] == 3
        assert node.ask("GET", "/v1/jobs?cursor=p9~x").code == "bad_value"
        assert node.ask("GET", "/v1/jobs?limit=0").code == "bad_value"
        assert node.ask("GET", "/v1/jobs?nothing=1").code == "bad_value"
    events = nodes["a"].ask("GET", f"/v1/jobs/{ids[1]}/timeline").json["events"]
    assert events[0]["event"]


def test_counts_of_a_wide_queue_are_of_all_its_partitions(nodes: Gated) -> None:
    nodes.place(broad="p1,p2")
    for _ in range(4):
        nodes["a"].enqueue("broad", {"tenant": "ada"})
    _until_found(nodes, "/v1/jobs?queue=broad", 4)
    lanes = nodes["b"].ask("GET", "/v1/queues/broad/counts").json["lanes"]
    assert [lane["states"]["ready"] for lane in lanes] == [4]
    tenants = nodes["b"].ask("GET", "/v1/queues/broad/counts/tenants").json["tenants"]
    assert tenants == [{"tenant": "ada", "states": {"ready": 4}}]
    assert nodes["b"].ask("GET", "/v1/queues/broad/dead/groups").json["groups"] == []
