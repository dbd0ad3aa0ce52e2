"""A worker of the demonstration: leases jobs over HTTP, and says what became of them."""

import os
import sys
import threading
import time
from typing import Any, Final

from headway.cli.demo.child import report, when_left
from headway.cli.demo.story import SLOTS
from headway.cli.refused import Refused
from headway.cli.remote import Remote

WAIT: Final = "10s"
GRACE_S: Final = 2.0
PAUSE_S: Final = 0.5


class Worker:
    """So many slots, each with a connection of its own."""

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._name = name
        self._began_ms = time.time_ns() // 1_000_000
        self._is_stopping = threading.Event()
        self._busy = threading.BoundedSemaphore(SLOTS)

    def run(self) -> None:
        for number in range(SLOTS):
            name = f"{self._name}.{number + 1}"
            threading.Thread(target=self._slot, args=(name,), daemon=True).start()
        report("ready")
        self._is_stopping.wait()
        until_s = time.monotonic() + GRACE_S
        for _ in range(SLOTS):  # jobs that run are finished, if they are quick
            self._busy.acquire(timeout=max(0.0, until_s - time.monotonic()))

    def stop(self) -> None:
        self._is_stopping.set()

    def _slot(self, name: str) -> None:
        remote = Remote(self._url, None)
        wish = {"max": 1, "wait": WAIT, "worker": name}
        while not self._is_stopping.is_set():
            try:
                jobs = remote.post("v1", "lease", body=wish)["jobs"]
                for job in jobs:
                    with self._busy:
                        self._work(remote, job)
            except Refused:
                self._is_stopping.wait(PAUSE_S)

    def _work(self, remote: Remote, job: dict[str, Any]) -> None:
        """Measures how long the job has waited, from its sending on; then runs it."""
        payload = job.get("payload") or {}
        token = job["token"]
        is_first = job["attempt"] == 1 and "reply" not in job
        sent_ms = payload.get("sent_ms", 0)
        if is_first and sent_ms >= self._began_ms:  # else it is left from another time
            waited_ms = time.time_ns() // 1_000_000 - sent_ms
            started = (job["queue"], job["tenant"], payload["number"])
            report("start", *started, waited_ms)
        time.sleep(payload.get("run_ms", 50) / 1_000)
        if "ask" in payload and "reply" not in job:
            remote.post("v1", "wait", body=_asked(token, payload["ask"]))
            report("end", "asked")
        elif job["attempt"] <= payload.get("fails", 0):
            failure = {"token": token, "error": payload.get("error", "")}
            failure["bury"] = payload.get("fatal", False)
            remote.post("v1", "nack", body={"jobs": [failure]})
            report("end", "buried" if failure["bury"] else "failed")
        else:
            remote.post("v1", "ack", body={"tokens": [token]})
            report("end", "done")


def _asked(token: str, key: str) -> dict[str, object]:
    return {"token": token, "reply_key": key, "timeout": "1m"}


def main(url: str, name: str) -> None:
    worker = Worker(url, name)
    when_left(worker.stop)
    worker.run()
    sys.stdout.flush()
    os._exit(0)  # idle slots are asking for jobs, and need not be waited for


if __name__ == "__main__":
    main(*sys.argv[1:])
