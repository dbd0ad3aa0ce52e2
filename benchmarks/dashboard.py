"""The dashboard over 10,000 queues: how soon it is there, and what it costs the owner.

Every queue has a job of its own and a promise, so nothing can be left out of the count.
The browser is the machine's own Chromium; without one the pages are not measured.
`python -m benchmarks.dashboard --full` has ten million jobs ready in those queues, waits
until the index knows them all, and opens every kind of page; `--jobs` takes other numbers.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection
from math import nan
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from benchmarks.figure import Figure, shown
from benchmarks.http import ADDRESS, READY_S, SERVE
from benchmarks.processes import started, wait_for_line
from headway.core.commands import Configure, Enqueue
from headway.core.config import QueueConfig
from headway.core.spec import JobSpec
from headway.runtime.owner import Ask, Owner
from headway.server.settings import STORE
from headway.store.sqlite.store import SqliteStore
from tools.chromium import launched

PAINT_MS = 1_000.0
ASK_MS = 100.0
LOOKS = 15
PAGES = {"overview": "/#/", "queues, by trouble": "/#/queues"}
FULL_PAGES = {
    **PAGES,
    "a queue": "/#/queue/q00042",
    "search, the newest": "/#/search?all=yes",
    "search, by queue and state": "/#/search?queue=q00042&state=ready",
    "search, by tenant, oldest": "/#/search?queue=q00042&tenant=t4&order=oldest",
    "a job": "/#/job/{job}",
}
DRAWN = """() => {
  const shown = document.querySelectorAll(
    "main[data-page] tbody tr, main[data-page=job] ol.line li").length;
  const least = document.querySelector("main[data-page=job]") ? 1 : 10;
  return shown >= least ? performance.now() : false;
}"""
BATCH, BATCHES = 500, 20
"""Jobs of one call, and calls of one commit."""
TENANTS = 10
"""Of every queue in the file."""
INDEXED_S = 3_600.0
OPENED_S = 300.0
"""Against hanging only."""


@dataclass(frozen=True, slots=True)
class Sizes:
    queues: int = 10_000
    senders: int = 4
    jobs: int = 0
    """Ready jobs in the file before the server starts; none: one a queue, over HTTP."""


FULL = Sizes(jobs=10_000_000)


def run(sizes: Sizes | None = None) -> list[Figure]:
    if sizes is None:
        sizes = FULL if os.environ.get("BENCH_FULL") == "1" else Sizes()
    with tempfile.TemporaryDirectory(prefix="bench-dashboard-") as folder:
        log = Path(folder) / "log"
        if sizes.jobs:
            prepare(Path(folder) / "data", sizes)
        with started((*SERVE, f"{folder}/data"), log) as process:
            address = ADDRESS.search(wait_for_line(process, log, "http://", OPENED_S))
            assert address is not None
            port = int(address[1])
            pages = PAGES
            if sizes.jobs:
                job = indexed(port)
                pages = {
                    name: path.format(job=job) for name, path in FULL_PAGES.items()
                }
            else:
                fill(port, sizes)
            url = f"http://127.0.0.1:{port}"
            return [*asked(port, sizes), *drawn(url, sizes, pages)]


def prepare(data: Path, sizes: Sizes) -> None:
    """The file of a server, filled by its owner in a process that is gone afterwards."""
    began_s = time.monotonic()
    data.mkdir(mode=0o700)
    numbers = (str(sizes.queues), str(sizes.jobs))
    command = [sys.executable, "-m", "benchmarks.dashboard", "--fill", str(data)]
    subprocess.run([*command, *numbers], check=True)
    _say(f"{sizes.jobs:,} jobs written in {time.monotonic() - began_s:.0f} s")


def fill_file(data: Path, queues: int, jobs: int) -> None:
    """As many jobs in every queue, of ten tenants; every tenth job has a label."""
    owner = Owner(SqliteStore(data / STORE))
    clock = owner.take_over()
    labels = {"region": "east"}
    batch = [
        JobSpec(
            kind="send_mail",
            payload=b'{"to": "ada@example.com"}',
            is_json=True,
            tenant=f"t{number % TENANTS}",
            slo_ms=3_600_000,
            labels=None if number % 10 else labels,
        )
        for number in range(min(BATCH, jobs // queues))
    ]
    names = [f"q{number:05}" for number in range(queues)]
    asks: list[Ask] = [Configure(QueueConfig(name=name)) for name in names]
    asks += [
        Enqueue(name, batch)
        for _ in range(0, jobs, queues * len(batch))
        for name in names
    ]
    for first in range(0, len(asks), BATCHES):
        for _, told in owner.step(asks[first : first + BATCHES], clock.now_ms()):
            if isinstance(told, Exception):
                raise told
    owner.close()


def indexed(port: int) -> str:
    """Waits until the index knows every job; answers one from the middle of a queue."""
    began_s = time.monotonic()
    connection = HTTPConnection("127.0.0.1", port, timeout=READY_S)
    history = json.loads(_body(connection, "/v1/history"))
    last = history["partitions"][0]["next"] - 1
    until_s = began_s + INDEXED_S
    found: dict[str, Any] = {}
    while found.get("indexed_to", -1) < last:
        if time.monotonic() > until_s:
            raise TimeoutError(f"the index is not there after {INDEXED_S:.0f} s")
        time.sleep(0.5)
        connection.request("GET", "/v1/jobs?limit=1")  # 503 until there is an index
        found = json.loads(connection.getresponse().read())
    path = "/v1/jobs?queue=q00042&state=ready&limit=200"
    jobs = json.loads(_body(connection, path))["jobs"]
    connection.close()
    _say(f"indexed in {time.monotonic() - began_s:.0f} s")
    return str(jobs[len(jobs) // 2]["id"])


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


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
    jobs = f"and {sizes.jobs:,} jobs" if sizes.jobs else "with a job each"
    how = f"{sizes.queues:,} queues {jobs}; median of {LOOKS}"
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


def drawn(url: str, sizes: Sizes, pages: dict[str, str]) -> list[Figure]:
    """From the first request of a browser that knows nothing to rows on the screen."""
    with sync_playwright() as playwright:
        browser = launched(playwright)
        if browser is None:
            note = "there is no Chromium on this machine"
            return [
                Figure(f"dashboard, {name}", nan, "ms", note=note) for name in pages
            ]
        found = [
            _figure(name, [_drawn_ms(browser, url + path) for _ in range(5)], sizes)
            for name, path in pages.items()
        ]
        browser.close()
        return found


def _figure(name: str, took_ms: list[float], sizes: Sizes) -> Figure:
    jobs = f", {sizes.jobs:,} jobs" if sizes.jobs else ""
    note = (
        f"{sizes.queues:,} queues{jobs}; from opening the page in a fresh Chromium until its "
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
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != HTTPStatus.OK:
        raise ValueError(f"{path} was answered {answer.status}")
    return content


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--fill"]:
        data, queues, jobs = arguments[1:]
        fill_file(Path(data), int(queues), int(jobs))
        return 0
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dashboard")
    parser.add_argument("--full", action="store_true", help="ten million jobs")
    parser.add_argument("--jobs", type=int, help="so many jobs in the file")
    given = parser.parse_args(arguments)
    sizes = FULL if given.full else Sizes()
    figures = run(sizes if given.jobs is None else Sizes(jobs=given.jobs))
    for one in figures:
        print(f"{one.name}: {shown(one.value)} {one.unit} ({one.verdict}) {one.note}")
    return 0 if all(one.is_good for one in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
