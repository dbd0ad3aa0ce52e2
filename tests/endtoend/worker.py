"""A worker process: leases jobs and does with each what its kind says.

What it was answered goes to a journal, a line each, in one write: a kill loses none of
it. It ends by being killed, or when whoever started it has ended.
"""

import os
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from random import Random
from typing import Any, Final

from tests.endtoend.asking import Asker, Unanswered, pause
from tests.endtoend.plan import ASKS, TICK, WORKER_SETS, payload
from tests.endtoend.told import token_of

PATIENCE_S: Final = 30.0
WORK_S: Final = 0.02
"""The most that the jobs of one lease take: kills are to meet jobs in hand."""
BEAT_S: Final = 0.03
BEATS_MAX: Final = 12
LEASE_MS: Final = 2_000
WAIT_MS: Final = {"late": 150, "early": 1_500, "timely": 1_500}
LATE_S: Final = 0.4
REPLY_S: Final = 0.2

Job = dict[str, Any]


class Journal:
    """Appends whole lines; they are safe once the call has returned."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def tell(self, verb: str, *words: object) -> None:
        line = " ".join([verb, *map(str, words)]) + "\n"
        os.write(self._file, line.encode())


class Replier:
    """The partner that answers: in a thread of its own, after a while."""

    def __init__(self, port: int, journal: Journal) -> None:
        self._asker = Asker(port, PATIENCE_S)
        self._journal = journal
        self._due: deque[tuple[float, str, int]] = deque()
        self._more = threading.Semaphore(0)
        threading.Thread(target=self._serve, daemon=True).start()

    def promise(self, key: str, after_s: float, times: int = 1) -> None:
        self._due.append((time.monotonic() + after_s, key, times))
        self._more.release()

    def reply(self, asker: Asker, key: str) -> None:
        path = f"/v1/queues/{ASKS}/replies/{key}"
        status, body = asker.ask("POST", path, {"payload": key})
        if status != 200:
            self._journal.tell("strange", "reply", status, body)
        elif body["fate"] in ("resolved", "early"):
            self._journal.tell(body["fate"], key)

    def _serve(self) -> None:
        while self._more.acquire():
            due_s, key, times = self._due.popleft()
            pause(max(0.0, due_s - time.monotonic()))
            # A partner that gives up: the wait ends by its timeout.
            with suppress(Unanswered):
                for _ in range(times):
                    self.reply(self._asker, key)


class Worker:
    """One process's work."""

    def __init__(self, port: int, name: str, journal: Journal) -> None:
        self.name = name
        self.chance = Random(name)
        self.asker = Asker(port, PATIENCE_S)
        self.journal = journal
        self.replier = Replier(port, journal)
        self.late_replier = Replier(port, journal)
        """For replies that come too late: others do not wait behind them."""
        place = int(name.partition(".")[0].removeprefix("w"))
        self.queues = WORKER_SETS[place % len(WORKER_SETS)]

    def lease(self) -> list[Job]:
        body: dict[str, Any] = {
            "max": self.chance.randint(1, 20),
            "wait": self.chance.choice([0, 200, 1_000]),
            "worker": self.name,
        }
        if self.queues is not None:
            body["queues"] = self.queues
        jobs: list[Job] = self._ask("/v1/lease", body).get("jobs", [])
        if jobs:
            self.journal.tell("lease", *(self._handed(job) for job in jobs))
        return jobs

    def work(self, jobs: list[Job]) -> None:
        """Each by its kind; what only needs an ack is acked together."""
        done: list[Job] = []
        failed: list[Job] = []
        given_back: list[Job] = []
        beating: list[Job] = []
        for job in jobs:
            match job["kind"]:
                case "dies" if job["attempt"] == 1:
                    os._exit(1)
                case "release" if self.chance.random() < 0.6:
                    given_back.append(job)
                case "beats" | "doomed":
                    beating.append(job)
                case "early" | "timely" | "late" | "twice" | "ends":
                    (done if "reply" in job else failed).append(job)
                case _ if _failure(job) is not None:
                    failed.append(job)
                case _:
                    done.append(job)
        if given_back:
            self._settle("release", given_back)
        asking = [job for job in failed if _failure(job) is None]
        for job in asking:
            self._wait(job)
        failed = [job for job in failed if job not in asking]
        if failed:
            body = [{"token": job["token"], **(_failure(job) or {})} for job in failed]
            self._tell("nack", failed, self._ask("/v1/nack", {"jobs": body}))
        done += self._beat(beating)
        if done:
            self._settle("ack", done)

    def _handed(self, job: Job) -> str:
        """Token and number; the payload must be what was sent."""
        found: dict[str, Any] = job["payload"]
        number = -1 if job["kind"] == TICK else found["number"]
        if number >= 0 and {**found, "again": 1} != {**payload(number), "again": 1}:
            self.journal.tell("strange", "payload", job["id"], found)
        return f"{token_of(job['token'])}:{number}"

    def _beat(self, jobs: list[Job]) -> list[Job]:
        """Heartbeats, until they are done or are to be cancelled; answers the done."""
        held = jobs
        for _ in range(BEATS_MAX):
            if not held:
                break
            tokens = [job["token"] for job in held]
            settled = self._ask("/v1/extend", {"tokens": tokens, "lease": LEASE_MS})
            over = set(settled.get("cancelled", []))
            doomed = [job for job in held if job["token"] in over]
            if doomed:
                body = [{"token": job["token"], "error": "told to"} for job in doomed]
                self._tell("nack", doomed, self._ask("/v1/nack", {"jobs": body}))
            held = [job for job in held if job["token"] not in over]
            pause(BEAT_S)
            if not any(job["kind"] == "doomed" for job in held):
                break
        return held

    def _wait(self, job: Job) -> None:
        kind, attempt = job["kind"], job["attempt"]
        key = f"{job['id']}.{attempt}"
        if kind == "early":
            self.replier.reply(self.asker, key)
        body = {
            "token": job["token"],
            "reply_key": key,
            "timeout": WAIT_MS.get(kind, 2_000) if attempt == 1 else 2_000,
            "done_on_reply": kind == "ends",
        }
        status, _ = self.asker.ask("POST", "/v1/wait", body)
        if status != 200:
            return  # the lease is over, or an answer was lost and it waits already
        self.journal.tell("wait", token_of(job["token"]))
        if kind == "late" and attempt == 1:
            self.late_replier.promise(key, LATE_S)
        elif kind != "early":
            after_s = self.chance.uniform(0, REPLY_S)
            self.replier.promise(key, after_s, 2 if kind == "twice" else 1)

    def _settle(self, verb: str, jobs: list[Job]) -> None:
        tokens = [job["token"] for job in jobs]
        self._tell(verb, jobs, self._ask(f"/v1/{verb}", {"tokens": tokens}))

    def _tell(self, verb: str, jobs: list[Job], settled: dict[str, Any]) -> None:
        stale = set(settled.get("stale", []))
        tokens = [token_of(j["token"]) for j in jobs if j["token"] not in stale]
        if "stale" in settled and tokens:
            self.journal.tell(verb, *tokens)

    def _ask(self, path: str, body: Any) -> dict[str, Any]:
        status, answer = self.asker.ask("POST", path, body)
        if status != 200:
            self.journal.tell("strange", path, status, answer)
            return {}
        assert isinstance(answer, dict)
        return answer


def _failure(job: Job) -> dict[str, Any] | None:
    """How this attempt fails, if it does."""
    attempt = job["attempt"]
    match job["kind"]:
        case "fails-once" if attempt == 1:
            return {"error": "once"}
        case "fails-twice" if attempt <= 2:
            return {"error": "twice"}
        case "later" if attempt == 1:
            return {"error": "later", "retry_in": 200}
        case "changed" if attempt == 1:
            return {"error": "other", "payload": {**job["payload"], "again": 1}}
        case "short":
            return {"error": "always"}
        case "bury":
            return {"error": "no use", "bury": True}
    return None


def main(port: int, name: str, journal: Journal) -> None:
    parent = os.getppid()
    worker = Worker(port, name, journal)
    while os.getppid() == parent:
        try:
            jobs = worker.lease()
            pause(worker.chance.uniform(0, WORK_S))
            worker.work(jobs)
        except Unanswered:
            continue


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Journal(sys.argv[3]))
