"""Producers and an operator: threads that speak to the server while it is killed."""

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from math import ceil
from random import Random
from typing import Any, Final

from tests.endtoend import plan as plans
from tests.endtoend.asking import NDJSON, Asker, pause
from tests.endtoend.plan import Plan
from tests.endtoend.processes import now_ms
from tests.endtoend.told import Told, seq_of

BATCH_MAX: Final = 200
PRODUCERS: Final = 2
CLOSED_S: Final = 0.5
EDGE_MS: Final = 100
PAUSED: Final = ("mail", "calls", "bulk", "ranked")
REDRIVEN: Final = ("bulk", "mail", "calls", "regions", plans.ASKS)


class Intake:
    """Gives out numbers: between two kills a share of them, spread over the gap."""

    def __init__(self, plan: Plan, kills: int, gap_s: float) -> None:
        self._jobs = plan.jobs
        self._each = plan.jobs / (kills + 1)
        self._gap_s = gap_s
        self._kills = 0
        self._since_s = time.monotonic()
        self._given = 0
        self._turn = threading.Lock()

    def killed(self) -> None:
        """The next share may go."""
        with self._turn:
            self._kills += 1
            self._since_s = time.monotonic()

    def take(self, most: int) -> list[int]:
        """The next numbers; none when all are out."""
        while True:
            with self._turn:
                first = self._given
                free = min(self._open(), self._jobs) - first
                if free > 0 or first == self._jobs:
                    self._given += min(most, free)
                    return list(range(first, self._given))
            pause(0.005)

    def _open(self) -> int:
        """How many may have been given out by now."""
        part = min(1.0, (time.monotonic() - self._since_s) / self._gap_s)
        return ceil((self._kills + part) * self._each)


class Producer:
    """Sends jobs until each is known to be accepted."""

    def __init__(
        self, plan: Plan, intake: Intake, told: Told, doomed: deque[tuple[float, int]]
    ) -> None:
        self._plan = plan
        self._intake = intake
        self._told = told
        self._doomed = doomed
        """When which job is to be cancelled."""
        self._sent: deque[tuple[str, list[int]]] = deque(maxlen=20)

    def run(self, port: int, name: str) -> None:
        asker = Asker(port)
        chance = self._plan.chance("producer", name)
        while numbers := self._intake.take(chance.choice([1, 1, 10, BATCH_MAX])):
            if self._sent and chance.random() < 0.1:
                # Answered long since, and yet: a proxy may do that.
                self._send(asker, chance, *chance.choice(self._sent))
            by_queue: dict[str, list[int]] = {}
            for number in numbers:
                by_queue.setdefault(self._plan.queue(number), []).append(number)
            for queue, some in by_queue.items():
                self._send(asker, chance, queue, some)
                self._sent.append((queue, some))
        self._told.repeats += asker.repeats
        asker.close()

    def _send(
        self, asker: Asker, chance: Random, queue: str, numbers: list[int]
    ) -> None:
        """One request; a full queue is asked again until it takes them."""
        bodies = [self._plan.body(number) for number in numbers]
        headers: dict[str, str] = {}
        content: Any = bodies
        if len(bodies) == 1 and chance.random() < 0.5:
            content = bodies[0]
            headers["idempotency_key"] = content.pop("idempotency_key")
        elif chance.random() < 0.4:
            headers["content_type"] = NDJSON
            content = "\n".join(map(json.dumps, bodies)).encode()
        path = f"/v1/queues/{queue}/jobs"
        while True:
            status, answer = asker.ask("POST", path, content, **headers)
            if status != 409 or answer["code"] != "queue_full":
                break
            pause(0.02)
        if status != 201:
            self._told.strange.append(f"enqueue: {status} {answer}")
            return
        self._told.recovered += answer["duplicates"]
        for number, body, job in zip(numbers, bodies, answer["jobs"], strict=True):
            seq = seq_of(job["id"])
            known = self._told.accepted.setdefault(number, seq)
            if known != seq:
                text = f"invariant 19: {number} was {known} and is {seq}"
                self._told.strange.append(text)
            if body["kind"] == "doomed" or chance.random() < 0.02:
                after_s = chance.uniform(0, 0.1)
                self._doomed.append((time.monotonic() + after_s, seq))


class Operator:
    """Cancels, pauses and redrives while there is work; puts all in order at the end."""

    def __init__(self, plan: Plan, told: Told) -> None:
        self.doomed: deque[tuple[float, int]] = deque()
        self.redrives = 0
        self._plan = plan
        self._told = told
        self._is_over = threading.Event()

    def prepare(self, asker: Asker) -> None:
        """Queues with their rules, a schedule, and a queue that is blocked at first."""
        for name, rules in plans.QUEUES.items():
            self._good(asker, "PUT", f"/v1/queues/{name}", rules)
        body = {
            "cron": "*/2 * * * * *",
            "missed": "all",
            "job": {"kind": plans.TICK, "payload": {"number": -1}},
        }
        path = f"/v1/queues/{plans.TICKS}/schedules/{plans.SCHEDULE}"
        self._good(asker, "PUT", path, body)
        self._good(asker, "POST", f"/v1/queues/{plans.NIGHT}/block")

    def stop(self) -> None:
        self._is_over.set()

    def run(self, port: int) -> None:
        asker = Asker(port)
        chance = self._plan.chance("operator")
        acts: tuple[Callable[[Asker, Random], None], ...] = (
            self._pause,
            self._redrive,
            self._redrive_one,
            self._set_tenant,
        )
        next_s = 0.0
        while not self._is_over.is_set():
            self._cancel_due(asker)
            if time.monotonic() >= next_s:
                chance.choice(acts)(asker, chance)
                next_s = time.monotonic() + chance.uniform(0.2, 0.8)
            self._is_over.wait(0.02)
        self._told.repeats += asker.repeats
        asker.close()

    def put_in_order(self, asker: Asker) -> None:
        """No more ticks; the night's jobs start when their window is opened, not before."""
        path = f"/v1/queues/{plans.TICKS}/schedules/{plans.SCHEDULE}"
        self._good(asker, "DELETE", path, known=(204, 404))
        night = f"/v1/queues/{plans.NIGHT}"
        hour = time.gmtime(time.time() + 6 * 3_600).tm_hour
        shut = [{"span": f"{hour:02}:00-{hour:02}:30"}]
        self._good(asker, "PATCH", night, {"windows": shut})
        from_ms = now_ms()
        self._good(asker, "POST", f"{night}/unblock")
        pause(CLOSED_S)
        # The server's clock is its own: the edge is not looked at.
        self._told.closed.append((plans.NIGHT, from_ms, now_ms() - EDGE_MS))
        rules = plans.QUEUES[plans.NIGHT]
        self._good(asker, "PATCH", night, {"windows": rules["windows"]})

    def _cancel_due(self, asker: Asker) -> None:
        while self.doomed and self.doomed[0][0] <= time.monotonic():
            _, seq = self.doomed.popleft()
            known = (200, 202, 404, 409)
            status, _ = self._good(asker, "DELETE", f"/v1/jobs/p1_{seq}", known=known)
            if status == 200:
                self._told.cancelled.add(seq)

    def _pause(self, asker: Asker, chance: Random) -> None:
        path = f"/v1/queues/{chance.choice(PAUSED)}"
        self._good(asker, "POST", f"{path}/pause")
        self._is_over.wait(chance.uniform(0.05, 0.3))
        self._good(asker, "POST", f"{path}/resume")

    def _redrive(self, asker: Asker, chance: Random) -> None:
        path = f"/v1/queues/{chance.choice(REDRIVEN)}/dead/redrive"
        body = {
            "filter": {"tenant": f"tenant-{chance.randrange(7)}"},
            "preview": chance.random() < 0.2,
        }
        status, _ = self._good(asker, "POST", path, body, known=(200, 202, 409))
        self.redrives += status == 202

    def _redrive_one(self, asker: Asker, chance: Random) -> None:
        queue = chance.choice(REDRIVEN)
        _, page = self._good(asker, "GET", f"/v1/queues/{queue}/dead?limit=5")
        for job in page["jobs"]:
            path = f"/v1/jobs/{job['id']}/redrive"
            self._good(asker, "POST", path, known=(200, 404, 409))

    def _set_tenant(self, asker: Asker, chance: Random) -> None:
        path = f"/v1/queues/mail/tenants/tenant-{chance.randrange(7)}"
        self._good(asker, "PUT", path, {"weight": chance.choice([0.5, 1.0, 3.0])})

    def _good(
        self,
        asker: Asker,
        method: str,
        path: str,
        body: Any = b"",
        known: tuple[int, ...] = (200,),
    ) -> tuple[int, Any]:
        status, answer = asker.ask(method, path, body)
        if status not in known:
            self._told.strange.append(f"{method} {path}: {status} {answer}")
        return status, answer
