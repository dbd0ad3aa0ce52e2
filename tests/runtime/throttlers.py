"""Throttlers that tests name: what a job's kind asks them for, they do.

A payload is a folder in which a throttler leaves a sign that it was asked, and waits for
one that it may go on.
"""

import os
import signal
from pathlib import Path
from typing import Any

from headway.throttling import Later, Refuse, Running, Start, ThrottledJob, Verdict


def by_kind(job: ThrottledJob, running: Running) -> Verdict | Any:
    match job.kind:
        case "later":
            is_put_off = job.ready_ms > job.enqueued_ms
            return Start() if is_put_off else Later("10ms")
        case "past":
            is_put_off = job.ready_ms > job.enqueued_ms
            return Start() if is_put_off else Later(0)
        case "refuse":
            return Refuse(f"{job.tenant} owes us money")
        case "class":
            return Start
        case "none":
            return None
        case "raise":
            return _raised_until(Path(job.payload.decode()) / "good")
        case "exit":
            os._exit(7)
        case "hang":
            folder = Path(job.payload.decode())
            (folder / "pid").write_text(str(os.getpid()))
            while True:
                signal.pause()
        case "flood":
            os.write(1, b"a line of many\n" * 100_000)
            return Start()
        case "gate":
            folder = Path(job.payload.decode())
            os.mkfifo(folder / "asked")
            (folder / "asked").read_text()
            return Start()
        case _:
            return Start()


def _raised_until(good: Path) -> Verdict:
    if not good.exists():
        raise ValueError(f"there is no {good.name}")
    return Start()


def at_most_three(job: ThrottledJob, running: Running) -> Verdict:
    """By everything that it is shown, which must be the same."""
    total = running.total
    assert total == running.queues[job.queue] == sum(running.kinds.values())
    assert total == sum(running.tenants.values())
    assert total == sum(running.labels.get("region", {}).values())
    assert running.label("region", "nowhere") == running.tenants["nobody"] == 0
    return Start() if total < 3 else Later("1ms")


def one_of_each(job: ThrottledJob, running: Running) -> Verdict:
    """By labels, tenants, other queues and limits."""
    if running.queues["closing"] or running.label("region", job.labels["region"]):
        return Later("1ms")
    (limit,) = job.limits
    assert limit.name == "wide"
    assert limit.used <= running.total
    return Start()


def loud(job: ThrottledJob, running: Running) -> Verdict:
    print('{"event": "forged"}')  # noqa: T201 what becomes of it is tested
    os.write(2, b"\xff\x1b[31m half a line")
    if job.kind == "raise":
        raise ValueError("a secret of the payload")
    return Start()


number = 3


async def asynchronous(job: ThrottledJob, running: Running) -> Verdict:
    return Start()
