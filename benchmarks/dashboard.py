"""The dashboard over 10,000 queues: how soon it is there, and what it costs the owner.

Every queue has a job of its own and a promise, so nothing can be left out of the count.
The browser is the machine's own Chromium; without one the pages are not measured.
"""

import json
import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection
from math import nan
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from benchmarks.figure import Figure
from benchmarks.http import ADDRESS, READY_S, SERVE
from benchmarks.processes import started, wait_for_line
from tools.chromium import launched

PAINT_MS = 1_000.0
ASK_MS = 100.0
LOOKS = 15
PAGES = {"overview": "/#/", "queues, by trouble": "/#/queues"}
DRAWN = """() => {
  const shown = document.querySelectorAll("main[data-page] tbody tr").length;
  return shown > 10 ? performance.now() : false;
}"""


@dataclass(frozen=True, slots=True)
class Sizes:
    queues: int = 10_000
    senders: int = 4


FULL = Sizes(queues=50_000)


def run(sizes: Sizes | None = None) -> list[Figure]:
    if sizes is None:
        sizes = FULL if os.environ.get("BENCH_FULL") == "1" else Sizes()
    with tempfile.TemporaryDirectory(prefix="bench-dashboard-") as folder:
        log = Path(folder) / "log"
        with started((*SERVE, f"{folder}/data"), log) as process:
            address = ADDRESS.search(wait_for_line(process, log, "http://", READY_S))
            assert address is not None
            port = int(address[1])
            fill(port, sizes)
            return [*asked(port, sizes), *drawn(f"http://127.0.0.1:{port}", sizes)]


def fill(port: int, sizes: Sizes) -> None:
    """A job in each of so many queues."""

    def send(first: int) -> None:
        connection = HTTPConnection("127.0.0.1", port, timeout=READY_S)
        headers = {"content-type": "application/json"}
        for number in range(first, sizes.queues, sizes.senders):
            body = json.dumps({"kind": "k", "tenant": f"t{number % 100}", "slo": "1h"})
            path = f"/v1/queues/q{number:05}/jobs"
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 201, answer.status
        connection.close()

    with ThreadPoolExecutor(sizes.senders) as senders:
        list(senders.map(send, range(sizes.senders)))


def asked(port: int, sizes: Sizes) -> list[Figure]:
    """What the two requests cost that look at everything."""
    how = f"{sizes.queues:,} queues with a job each; median of {LOOKS}"
    connection = HTTPConnection("127.0.0.1", port, timeout=READY_S)
    ranking = [_took_ms(connection, "/v1/ranking?limit=50") for _ in range(LOOKS)]
    metrics = [_took_ms(connection, "/metrics") for _ in range(LOOKS)]
    live = json.loads(_body(connection, "/v1/live"))
    size = len(json.dumps(live)) / 1_024
    connection.close()
    return [
        Figure(
            "dashboard, queues by trouble",
            statistics.median(ranking),
            "ms",
            ceiling=ASK_MS,
            note=f"GET /v1/ranking, over HTTP; {how}",
        ),
        Figure("dashboard, one moment", size, "KiB", note=f"GET /v1/live; {how}"),
        Figure(
            "beside it, a look of Prometheus",
            statistics.median(metrics),
            "ms",
            note=f"GET /metrics, over HTTP; {how}",
        ),
    ]


def drawn(url: str, sizes: Sizes) -> list[Figure]:
    """From the first request of a browser that knows nothing to rows on the screen."""
    with sync_playwright() as playwright:
        browser = launched(playwright)
        if browser is None:
            note = "there is no Chromium on this machine"
            return [
                Figure(f"dashboard, {name}", nan, "ms", note=note) for name in PAGES
            ]
        found = [
            _figure(name, [_drawn_ms(browser, url + path) for _ in range(5)], sizes)
            for name, path in PAGES.items()
        ]
        browser.close()
        return found


def _figure(name: str, took_ms: list[float], sizes: Sizes) -> Figure:
    note = (
        f"{sizes.queues:,} queues; from opening the page in a fresh Chromium until its "
        f"rows are drawn; median of {len(took_ms)}, worst {max(took_ms):.0f} ms"
    )
    value = statistics.median(took_ms)
    return Figure(f"dashboard, {name}", value, "ms", ceiling=PAINT_MS, note=note)


def _drawn_ms(browser: Browser, address: str) -> float:
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    handle = page.wait_for_function(DRAWN, polling=20)
    took_ms: Any = handle.json_value()
    context.close()
    return float(took_ms)


def _took_ms(connection: HTTPConnection, path: str) -> float:
    began = time.perf_counter()
    _body(connection, path)
    return (time.perf_counter() - began) * 1_000


def _body(connection: HTTPConnection, path: str) -> bytes:
    connection.request("GET", path)
    return connection.getresponse().read()
