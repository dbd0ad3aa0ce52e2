"""A report needs the partner for itself: beside it nothing runs, and it runs beside nothing."""

import asyncio
import os
from collections import Counter

import headway
from headway.throttling import Later, Running, Start, ThrottledJob, Verdict

ALONE = "report"
app = headway.App(
    os.environ.get("HEADWAY_URL", "sqlite:///throttler.db"),
    throttlers={"partner": "throttler:one_report_alone"},
)
running: Counter[str] = Counter()
done: Counter[str] = Counter()
beside: Counter[str] = Counter()


def one_report_alone(job: ThrottledJob, running: Running) -> Verdict:
    """Asked in a process of its own, which imports this file."""
    if running.kinds[ALONE] or (job.kind == ALONE and running.total):
        return Later("20ms")
    return Start()


async def run(kind: str) -> None:
    running[kind] += 1
    if running[ALONE] and running.total() > 1:
        beside[kind] += 1
    await asyncio.sleep(0.005)
    running[kind] -= 1
    done[kind] += 1


@app.job(queue="partner", tenant=lambda order: f"customer {order % 7}")
async def ship(order: int) -> None:
    await run("ship")


@app.job(queue="partner", kind=ALONE)
async def report(number: int) -> None:
    await run(ALONE)


if __name__ == "__main__":
    ship.enqueue_many([(order,) for order in range(30)])
    report.enqueue_many([(number,) for number in range(3)])
    while done.total() < 33:
        app.work(until_empty=True, concurrency=10)
    app.close()
    print(f"{done['ship']} orders and {done[ALONE]} reports")
    print(f"{beside.total()} jobs ran beside a report")
