"""Jobs of all kinds, sent to a real server: everything that history can tell of.

What happens to a job is drawn by a seed; when it happens is the server's business. The
work is done in large requests, so that many jobs take little time.
"""

import random
import time
from typing import Any
from urllib.parse import quote
from uuid import UUID

from tests.server.process import PATIENCE_S, Served

QUEUES = ("mail", "video", "billing")
TENANTS = ("acme", "globex", "initech", "umbrella")
KINDS = ("send", "render", "charge")
SLOS = (1, 200, 5_000, 60_000, 3_600_000)
BATCH = 1_000
SINGLES = 60
"""How many jobs of a round are treated one by one."""
RULES = {
    "mail": {"limits": [{"type": "concurrency", "name": "all", "max": 4_000}]},
    "video": {
        "limits": [
            {"type": "concurrency", "name": "one", "max": 900, "per": "tenant"},
            {"type": "rate", "name": "pace", "count": 50_000, "period": "1s"},
        ],
        "fair_by": "time",
    },
    "billing": {"order": "priority", "slo": "2m"},
}
CROWDED = {
    "tight": {
        "limits": [
            {"type": "concurrency", "name": "all", "max": 3},
            {"type": "concurrency", "name": "each", "max": 1, "per": "tenant"},
        ]
    },
    "paced": {"limits": [{"type": "rate", "name": "pace", "count": 2, "period": "1m"}]},
}
"""Queues whose limits keep more jobs waiting than they let start."""


class Traffic:
    """Drives one server; it is the only one who does."""

    def __init__(self, served: Served, seed: int) -> None:
        self.served = served
        self._random = random.Random(seed)
        self._keys = 0
        self._answered: list[tuple[str, str]] = []
        self._unanswered: list[tuple[str, str]] = []

    def run(self, count: int) -> None:
        """So many jobs, and what becomes of them."""
        self._prepare()
        left = count
        number = 0
        while left > 0:
            size = min(left, BATCH, max(100, count // 12))
            queue = QUEUES[number % len(QUEUES)]
            ids = self._enqueue(queue, size)
            self._hold(queue, number)
            self._cancel(ids)
            self._lose(queue, size)
            self._work(queue, size)
            self._tidy(queue, number)
            self._crowd()
            left -= size
            number += 1
        self._settle()

    def _prepare(self) -> None:
        for queue, rules in {**RULES, **CROWDED}.items():
            self._ask("PUT", f"/v1/queues/{queue}", rules)
        self._ask("PUT", "/v1/queues/tiny", {"max_length": 1})
        for queue in ("mail", "tiny"):
            body = {"cron": "* * * * * *", "job": {"kind": "tick", "slo": "1s"}}
            self._ask("PUT", f"/v1/queues/{queue}/schedules/each-second", body)

    def _enqueue(self, queue: str, size: int) -> list[str]:
        jobs = [self._job() for _ in range(size)]
        answer = self._ask("POST", f"/v1/queues/{queue}/jobs", jobs)
        return [job["id"] for job in answer["jobs"]]

    def _job(self) -> dict[str, Any]:
        draw = self._random
        # One tenant brings more than all others.
        tenant = draw.choices(TENANTS, (10, 3, 2, 1))[0]
        job: dict[str, Any] = {
            "kind": draw.choice(KINDS),
            "tenant": tenant,
            "slo": draw.choice(SLOS),
            "attempts": draw.choice((1, 2, 5)),
            "retry": {"type": "fixed", "delay": draw.choice((0, 20))},
        }
        if draw.random() < 0.3:
            job["cost"] = draw.choice((0, 2, 5))
        if draw.random() < 0.3:
            job["priority"] = draw.randrange(-5, 6)
        if draw.random() < 0.2:
            job["labels"] = {"region": draw.choice(("eu", "us"))}
        if draw.random() < 0.02:
            job["weight"] = draw.choice((0.5, 1.0, 2.0))
        if draw.random() < 0.1:
            # Some will be ready in other hours and on another day.
            job["delay"] = draw.choice((30, 2_000, 3_600_000, 86_400_000))
        if draw.random() < 0.05:
            job["lifetime"] = draw.choice((1, 400))
        return job

    def _hold(self, queue: str, number: int) -> None:
        """Rules that change, and a queue that stands still for a moment."""
        weight = (1.0, 2.5, 0.25, 4.0)[number % 4]
        tenant = TENANTS[number // 3 % len(TENANTS)]
        self._ask("PUT", f"/v1/queues/{queue}/tenants/{tenant}", {"weight": weight})
        if number % 3 == 0:
            self._ask("POST", f"/v1/queues/{queue}/pause")
            paused = {"paused": number % 2 == 0}
            self._ask("PUT", f"/v1/queues/{queue}/tenants/{TENANTS[3]}", paused)
            self._ask("POST", f"/v1/queues/{queue}/resume")
            self._ask(
                "PUT", f"/v1/queues/{queue}/tenants/{TENANTS[3]}", {"paused": False}
            )

    def _cancel(self, ids: list[str]) -> None:
        for name in self._random.sample(ids, min(len(ids), SINGLES) // 4):
            self._withdraw(name)

    def _withdraw(self, name: str) -> None:
        """Unless it is over already: some live for a moment only."""
        answer = self.served.ask("DELETE", f"/v1/jobs/{name}")
        assert answer.status < 300 or answer.status in {404, 409}, answer

    def _lose(self, queue: str, size: int) -> None:
        """A worker that is never heard of again."""
        self._lease(queue, max(1, size // 25), lease=1)

    def _work(self, queue: str, size: int) -> None:
        """Leases and ends what is there, for a while."""
        for _ in range(3):
            jobs = self._lease(queue, size)
            if not jobs:
                return
            single, many = jobs[:SINGLES], jobs[SINGLES:]
            for job in single[::2]:
                self._wait(queue, job)
            for job in single[1::8]:
                self._withdraw(job["id"])
            self._end(single[1::2] + many)

    def _end(self, jobs: list[dict[str, Any]]) -> None:
        acks, releases, failures, extended = [], [], [], []
        for job in jobs:
            fate = self._random.random()
            if fate < 0.72:
                acks.append(job["token"])
            elif fate < 0.76:
                releases.append(job["token"])
            elif fate < 0.78:
                extended.append(job["token"])
            else:
                failures.append(self._failure(job["token"], fate))
        if extended:
            self._ask("POST", "/v1/extend", {"tokens": extended, "lease": "1m"})
        for verb, tokens in (("ack", acks + extended), ("release", releases)):
            if tokens:
                self._ask("POST", f"/v1/{verb}", {"tokens": tokens})
        if failures:
            self._ask("POST", "/v1/nack", {"jobs": failures})

    def _failure(self, token: str, fate: float) -> dict[str, Any]:
        draw = self._random
        name = UUID(int=draw.getrandbits(128))
        error = draw.choice(
            (
                f"ValueError: order {draw.randrange(1_000)} is not open\ntrace",
                f"\n  KeyError: '{name}' at 0x{draw.getrandbits(32):x}",
                f"TimeoutError: host {draw.getrandbits(40):012x} after 30 s",
                "",
            )
        )
        failure: dict[str, Any] = {"token": token, "error": error}
        if fate > 0.94:
            failure["bury"] = True
        elif fate > 0.9:
            failure["retry_in"] = 10
        return failure

    def _wait(self, queue: str, job: dict[str, Any]) -> None:
        """Replies that come early, in time, twice, late or never."""
        self._keys += 1
        partner = self._random.choice(("bank", "carrier-", "Ünal", "7up"))
        key = f"{partner}{self._keys}"
        fate = self._keys % 5
        body = {"token": job["token"], "reply_key": key, "timeout": "1h"}
        body["done_on_reply"] = self._random.random() < 0.5
        if fate == 0:
            self._reply(queue, key)
        if fate in {3, 4}:
            body["timeout"] = 1
        if self._waits(body) and fate in {0, 1, 2}:
            self._answered.append((queue, key))
            if fate:
                self._reply(queue, key)
            if fate == 2:
                self._reply(queue, key)
        elif fate == 3:
            self._unanswered.append((queue, key))

    def _waits(self, body: dict[str, Any]) -> bool:
        """Whether the job was still leased: it may have expired meanwhile."""
        return self.served.ask("POST", "/v1/wait", body).status == 200

    def _reply(self, queue: str, key: str) -> None:
        path = f"/v1/queues/{queue}/replies/{quote(key)}"
        self._ask("POST", path, {"payload": 1})

    def _tidy(self, queue: str, number: int) -> None:
        """Dead letters go back or away; replies come too late."""
        for old, key in self._unanswered:
            self._reply(old, key)
        self._unanswered.clear()
        if number % 4 == 3:
            body: dict[str, Any] = {"filter": {"kind": "send"}}
            self._bulk(f"/v1/queues/{queue}/dead/redrive", body)
            body = {"filter": {"kind": "charge"}}
            self._bulk(f"/v1/queues/{queue}/dead/discard", body)
        tiny = self._lease("tiny", 1)
        if tiny and number % 3 == 0:
            self._ask("POST", "/v1/ack", {"tokens": [job["token"] for job in tiny]})

    def _crowd(self) -> None:
        """More than limits let start; what they do waits for its turn in vain."""
        jobs = [{"kind": "send", "tenant": tenant} for tenant in TENANTS]
        for queue in CROWDED:
            self._ask("POST", f"/v1/queues/{queue}/jobs", jobs * 2)
            started = self._lease(queue, len(jobs), lease="1m")
            assert len(started) < len(jobs)
            if started:
                tokens = [job["token"] for job in started[:2]]
                self._ask("POST", "/v1/ack", {"tokens": tokens})

    def _uncrowd(self) -> None:
        """Limits that go are told of at once; others when their minute is over."""
        for queue in CROWDED:
            self._ask("PUT", f"/v1/queues/{queue}", {})

    def _settle(self) -> None:
        """Until what runs out by itself has run out, and ticks were skipped."""
        self._uncrowd()
        for queue in QUEUES:
            self._until(lambda queue=queue: not self._counts(queue)["leased"])
        for queue in ("mail", "tiny"):
            path = f"/v1/queues/{queue}/schedules/each-second"
            self._ask("DELETE", path)

    def _bulk(self, path: str, body: dict[str, Any]) -> None:
        begun = self._ask("POST", path, body)
        operation = f"/v1/operations/{begun['id']}"
        self._until(lambda: self._ask("GET", operation)["ended_ms"] is not None)

    def _counts(self, queue: str) -> dict[str, int]:
        counts: dict[str, int] = self._ask("GET", f"/v1/queues/{queue}")["counts"]
        return counts

    def _lease(self, queue: str, most: int, lease: Any = 1_500) -> list[dict[str, Any]]:
        body = {"queues": [queue], "max": most, "worker": "w", "lease": lease}
        found: list[dict[str, Any]] = self._ask("POST", "/v1/lease", body)["jobs"]
        return found

    def _until(self, is_so: Any) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline_s

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        answer = self.served.ask(method, path, body)
        assert answer.status < 300, (method, path, answer)
        return answer.json if answer.body else None
