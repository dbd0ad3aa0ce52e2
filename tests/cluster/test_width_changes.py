"""A queue whose partitions change all the time, while it is used at every node."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.cluster.gated import Gated, gated
from tests.server.process import PATIENCE_S

PATH = "/v1/queues/busy"
CONCURRENCY = 8
LENGTH = 40


class Traffic:
    """Jobs that come in, are leased and done, at both nodes."""

    def __init__(self, nodes: Gated) -> None:
        self._nodes = nodes
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._running = 0
        self._there = 0
        self.longest = 0
        """Jobs that were accepted and are not done for certain."""
        self.most = 0
        self.accepted = 0
        self.done: Counter[str] = Counter()
        works: list[Callable[[str], None]] = [self._produce, self._work] * 3
        self._threads = [
            threading.Thread(target=work, args=("ab"[place % 3 % 2],))
            for place, work in enumerate(works)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def _produce(self, node: str) -> None:
        while not self._stop.is_set():
            answer = self._nodes[node].ask("POST", f"{PATH}/jobs", {})
            with self._lock:
                self.accepted += answer.status == 201
                self._there += answer.status == 201
                self.longest = max(self.longest, self._there)

    def _work(self, node: str) -> None:
        while not self._stop.is_set() or self.done.total() < self.accepted:
            got = self._nodes[node].lease("busy", max=3, wait="50ms")
            with self._lock:
                self._running += len(got)
                self.most = max(self.most, self._running)
            self._stop.wait(0.01)
            with self._lock:
                self._running -= len(got)
            if got:
                tokens = {"tokens": [job["token"] for job in got]}
                with self._lock:
                    self._there -= len(got)
                told = self._nodes[node].ask("POST", "/v1/ack", tokens).json
                with self._lock:
                    self.done.update(job["id"] for job in got)
                assert told["stale"] == []


@pytest.mark.long
def test_no_limit_is_passed_however_the_width_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.server.cluster.tending.TEND_S", 0.05)
    chance = Random(7)
    limit = {"type": "concurrency", "name": "smtp", "max": CONCURRENCY}
    rules = {"limits": [limit], "max_length": LENGTH}
    with gated(tmp_path, a=["p1", "p3"], b=["p2", "p4"]) as nodes:
        nodes.place(busy="p1")
        assert nodes["a"].ask("PUT", PATH, rules).status == 200
        traffic = Traffic(nodes)
        try:
            for _ in range(60):
                body = {"count": chance.randint(1, 4)}
                node = nodes[chance.choice("ab")]
                answer = node.ask("PUT", f"{PATH}/partitions", body)
                assert answer.status in (200, 409), answer
                assert nodes["a"].ask("GET", PATH).status == 200
        finally:
            traffic.stop()
        assert traffic.most <= CONCURRENCY
        assert traffic.longest <= LENGTH
        assert traffic.done.total() == len(traffic.done) == traffic.accepted > 0
        nodes["b"].ask("PUT", f"{PATH}/partitions", {"count": 1})
        until_s = time.monotonic() + PATIENCE_S
        while (mark := nodes.map.marks["busy"]).whole is not None:
            assert time.monotonic() < until_s, mark
            threading.Event().wait(0.05)
        assert mark.partitions == ("p1",)
        after = nodes["b"].ask("GET", PATH).json["rules"]
        assert (after["limits"][0]["max"], after["max_length"]) == (CONCURRENCY, LENGTH)
