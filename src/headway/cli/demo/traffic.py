"""The demonstration's tenants: they send jobs over HTTP, and answer what jobs ask."""

import heapq
import os
import random
import sys
import time
from typing import Any, Final

from headway.cli.demo.child import report, when_left
from headway.cli.demo.story import (
    ASKING,
    ERRORS,
    FAILING,
    FATAL,
    FATAL_ERROR,
    PARTNERS,
    RUN_MS,
    Story,
    story,
)
from headway.cli.refused import Refused
from headway.cli.remote import Remote

TICK_S: Final = 0.05
BATCH_MAX: Final = 200
ANSWER_S: Final = (2.0, 6.0)
PAUSE_S: Final = 0.5


class Traffic:
    """Sends what the story says, in small batches."""

    def __init__(self, url: str, told: Story, began_s: float) -> None:
        self._remote = Remote(url, None)
        self._story = told
        self._began_s = began_s
        self._chance = random.Random(17)  # noqa: S311 it only has to look lively
        self._owed: dict[tuple[str, str], float] = {}
        self._answers: list[tuple[float, str]] = []
        self._number = 0

    def run(self) -> None:
        last_s = time.time()
        while True:
            now_s = time.time()
            self._owe(now_s - self._began_s, now_s - last_s)
            last_s = now_s
            try:
                self._send()
                self._answer(now_s)
            except Refused:
                time.sleep(PAUSE_S)
            time.sleep(TICK_S)

    def _owe(self, elapsed_s: float, passed_s: float) -> None:
        """Arrivals come by chance, at the rates of the story."""
        for place, rate in self._story.rates(elapsed_s).items():
            due = rate * passed_s * self._chance.uniform(0.5, 1.5)
            owed = self._owed.get(place, 0.0) + due
            self._owed[place] = min(owed, BATCH_MAX)

    def _send(self) -> None:
        for lane in self._story.lanes:
            jobs: list[dict[str, Any]] = []
            for (queue, tenant), owed in self._owed.items():
                if queue == lane.queue:
                    jobs += [
                        self._job(queue, lane.kind, tenant) for _ in range(int(owed))
                    ]
                    self._owed[queue, tenant] = owed - int(owed)
            if jobs:
                self._post(lane.queue, jobs)

    def _post(self, queue: str, jobs: list[dict[str, Any]]) -> None:
        sent_ms = time.time_ns() // 1_000_000
        for job in jobs:
            job["payload"]["sent_ms"] = sent_ms
        accepted = self._remote.post("v1", "queues", queue, "jobs", body=jobs)
        for job, taken in zip(jobs, accepted["jobs"], strict=True):
            number, wait_ms = job["payload"]["number"], taken["expected_wait_ms"]
            report("sent", queue, job["tenant"], number, sent_ms, wait_ms)

    def _job(self, queue: str, kind: str, tenant: str) -> dict[str, Any]:
        chance = self._chance
        self._number += 1
        payload: dict[str, Any] = {
            "number": self._number,
            "run_ms": chance.randint(*RUN_MS),
        }
        job: dict[str, Any] = {"kind": kind, "tenant": tenant, "payload": payload}
        if queue == "webhook":
            job["labels"] = {"partner": chance.choice(PARTNERS)}
            if chance.random() < FAILING:
                payload["fails"] = 1
                payload["fatal"] = chance.random() < FATAL / FAILING
                payload["error"] = chance.choice(ERRORS)
                if payload["fatal"]:
                    payload["error"] = FATAL_ERROR
        elif queue == "default" and chance.random() < ASKING:
            key = f"order-{self._number}"
            job["kind"] = "approval"
            payload["ask"] = key
            at_s = time.time() + chance.uniform(*ANSWER_S)
            heapq.heappush(self._answers, (at_s, key))
        return job

    def _answer(self, now_s: float) -> None:
        """A reply that comes before its job has asked is kept for it."""
        while self._answers and self._answers[0][0] <= now_s:
            key = self._answers[0][1]
            body = {"payload": {"approved": True}}
            self._remote.post("v1", "queues", "default", "replies", key, body=body)
            heapq.heappop(self._answers)
            report("end", "answered")


def main(url: str, length: str) -> None:
    when_left(lambda: os._exit(0))
    began_s = time.time()
    report("ready", began_s)
    told = story(is_quick=length != "long", has_flood=length == "reported")
    Traffic(url, told, began_s).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
