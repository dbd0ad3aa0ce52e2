"""What docs/testing-your-app.md takes for granted: a shop with jobs."""

import sys
from pathlib import Path

SHOP = """
import headway

app = headway.App("http://127.0.0.1:1")
outbox = []


@app.job(queue="mail")
def welcome(to: str) -> None:
    outbox.append("welcome")


@app.job(queue="mail")
def remind(to: str) -> None:
    outbox.append("reminder")


@app.job(queue="orders")
def ship(order: int) -> object:
    return headway.wait_for(f"order-{order}", timeout="10m")


def sign_up(address: str) -> None:
    welcome.options(delay="1m").enqueue(address)
    remind.options(delay="24h").enqueue(address)
"""

Path("shop").mkdir()
Path("shop/__init__.py").touch()
Path("shop/jobs.py").write_text(SHOP)
sys.path.insert(0, "")

from shop.jobs import app, ship, sign_up, welcome  # type: ignore  # noqa: E402

assert all((app, ship, sign_up, welcome))
