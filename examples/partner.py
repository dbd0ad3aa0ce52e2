"""A partner takes 10 calls at once: 4 for the east, 3 each for north and west."""

import asyncio
import os
from collections import Counter

import headway

app = headway.App(os.environ.get("HEADWAY_URL", "sqlite:///partner.db"))
running: Counter[str] = Counter()
most: Counter[str] = Counter()

SHARES = headway.Shares("calls", 10, "region", {"east": 40, "north": 30, "west": 30})


@app.job(queue="partner", slo="1m")
async def call_partner(region: str) -> None:
    running[region] += 1
    most[region] = max(most[region], running[region])
    await asyncio.sleep(0.01)
    running[region] -= 1


if __name__ == "__main__":
    app.configure(headway.QueueConfig(name="partner", limits=(SHARES,)))
    for region in ("east", "north", "west"):
        calls = call_partner.options(labels={"region": region})
        calls.enqueue_many([(region,)] * 50)
    app.work(until_empty=True, concurrency=50)
    app.close()
    for region, count in sorted(most.items()):
        print(f"{region}: at most {count} at once")
