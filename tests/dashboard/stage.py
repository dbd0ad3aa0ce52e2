"""A server with something of everything, and hostile words wherever words are allowed."""

import time
from typing import Any
from urllib.parse import quote

from tests.server.process import PATIENCE_S, Served

EVIL = '"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
"""Runs wherever a page takes it for markup."""
WORKER = f"worker {EVIL}"[:128]
TENANT = f"tenant {EVIL}"[:128]
KIND = f"kind {EVIL}"[:128]
KEY = f"key {EVIL}"[:128]
SCHEDULE = f"schedule {EVIL}"[:128]
REASON = f"because {EVIL}"
BIG = 12345678901234567890123
"""More digits than a number of JavaScript holds."""


class Stage:
    """Brings a server into a state that every page can show."""

    def __init__(self, served: Served, token: str | None = None) -> None:
        self.served = served
        self._token = token
        self.limited: list[str] = []
        """Jobs of `limited`: one runs, the others wait for what it holds."""
        self.dead: list[str] = []
        self.waiting = ""

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        answer = self.served.ask(method, path, body, token=self._token, **headers)
        assert answer.status < 300, answer
        return answer.json if answer.body else None

    def enqueue(self, queue: str, *jobs: dict[str, Any]) -> list[str]:
        found = self.ask("POST", f"/v1/queues/{queue}/jobs", list(jobs))
        return [one["id"] for one in found["jobs"]]

    def lease(self, queue: str, most: int = 1) -> list[dict[str, Any]]:
        wish = {"queues": [queue], "max": most, "worker": WORKER, "lease": "1h"}
        jobs: list[dict[str, Any]] = self.ask("POST", "/v1/lease", wish)["jobs"]
        return jobs

    def set(self) -> "Stage":
        one = {"type": "concurrency", "name": "partner", "max": 1}
        self.ask("PUT", "/v1/queues/limited", {"slo": "1h", "limits": [one]})
        hostile = {
            "tenant": TENANT,
            "kind": KIND,
            "labels": {"label": EVIL[:128]},
            "headers": {"header": EVIL},
            "payload": {"html": EVIL, "big": BIG},
        }
        self.limited = self.enqueue("limited", hostile, hostile, hostile)
        assert len(self.lease("limited")) == 1
        self.die(2)
        (self.waiting,) = self.enqueue("asking", hostile)
        (asked,) = self.lease("asking")
        wish = {"token": asked["token"], "reply_key": KEY, "timeout": "1h"}
        self.ask("POST", "/v1/wait", wish)
        ticking = {"cron": "0 5 * * *", "zone": "Europe/London", "job": {"kind": KIND}}
        name = quote(SCHEDULE, safe="")
        self.ask("PUT", f"/v1/queues/ticking/schedules/{name}", ticking)
        self.ask("PUT", "/v1/queues/held", {"slo": "1m"})
        self.enqueue("held", hostile)
        reason = quote(REASON, safe="")
        self.ask("POST", "/v1/queues/held/pause", headway_reason=reason)
        self.indexed()
        return self

    def die(self, count: int) -> None:
        """So many more dead letters of `deadly`."""
        self.dead += self.enqueue(
            "deadly",
            *[
                {"tenant": TENANT, "kind": KIND, "payload": {"n": BIG, "html": EVIL}}
                for _ in range(count)
            ],
        )
        for job in self.lease("deadly", count):
            failed = {"token": job["token"], "error": f"{EVIL} 17", "bury": True}
            self.ask("POST", "/v1/nack", {"jobs": [failed]})

    def indexed(self) -> None:
        """Waits until the index knows what happened so far."""
        last = self.ask("GET", "/v1/history")["partitions"][0]["next"] - 1
        until_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < until_s:
            found = self.served.ask("GET", "/v1/jobs?limit=1", token=self._token)
            if found.status == 200 and found.json["indexed_to"] >= last:
                return
        raise AssertionError("the index does not follow")
