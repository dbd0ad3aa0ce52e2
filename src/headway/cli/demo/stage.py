"""Puts the demonstration on: sets it up, shows it, and takes everything down again."""

import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

import click
from rich.console import Console
from rich.live import Live

from headway.cli.demo import view
from headway.cli.demo.figures import Figures
from headway.cli.demo.processes import Troupe
from headway.cli.demo.story import TENANTS, WORKERS, Story, rules, story
from headway.cli.refused import Refused
from headway.cli.remote import URL, Remote

SECONDS: Final = {"quick": 30.0, "reported": 40.0, "long": None}
REFRESH_S: Final = 0.5
LINE_S: Final = 5.0
PORTS: Final = 100
SETTLED_MS: Final = 3_000

After = Callable[[str, Path], None]


class Stage:
    """What is on, and what is known of it."""

    def __init__(self, told: Story, url: str) -> None:
        self.story = told
        self.url = url
        self.remote = Remote(url, None)
        self.figures = Figures(told)
        self.began_s = time.time()
        self._lock = threading.Lock()
        self._counts: dict[str, dict[str, int]] = {}
        self._held: dict[str, str] = {}
        self._ticked_s = 0.0
        self._ready: SimpleQueue[list[Any]] = SimpleQueue()

    def tell(self, facts: list[Any]) -> None:
        if facts[0] == "ready":
            self._ready.put(facts)
        else:
            with self._lock:
                self.figures.tell(facts, time.time())

    def ready(self, troupe: Troupe, stop: threading.Event) -> list[Any]:
        """Waits for one more process to say that it is there."""
        while not stop.is_set():
            with suppress(Empty):
                return self._ready.get(timeout=REFRESH_S)
            troupe.check()
        return []

    def look(self) -> None:
        """Asks the server what it counts."""
        asked_ms = int(time.time() * 1_000)
        try:
            found = self.remote.get("v1", "queues")["queues"]
        except Refused:
            return  # busy, perhaps; if it is gone, the troupe knows
        self._counts = {one["name"]: one["counts"] for one in found}
        self._held = {
            one["name"]: "blocked" if one["is_blocked"] else "paused"
            for one in found
            if one["is_paused"] or one["is_blocked"]
        }
        with self._lock:
            for name, lane in self.figures.lanes.items():
                counts = self._counts.get(name, {})
                if not (counts.get("ready") or counts.get("leased")):
                    lane.emptied(asked_ms - SETTLED_MS)

    @contextmanager
    def scene(self) -> Iterator[view.Scene]:
        """This moment; it stands still while it is drawn."""
        now_s = time.time()
        with self._lock:
            if now_s - self._ticked_s >= 1:
                self._ticked_s = now_s
                self.figures.tick(now_s)
            yield view.Scene(
                self.story,
                self.figures,
                self.url,
                now_s - self.began_s,
                int(now_s * 1_000),
                self._counts,
                self._held,
            )


def perform(
    data: Path | None,
    *,
    port: int,
    seconds: float | None,
    is_quick: bool,
    after: After | None = None,
) -> None:
    """Runs until it is told to end, or for so many seconds.

    What comes after is given the server's address and folder: nobody sends any more, and
    workers still work.
    """
    length = "reported" if after is not None else "quick" if is_quick else "long"
    if seconds is None:
        seconds = SECONDS[length]
    with ExitStack() as stack:
        signals = stack.enter_context(ExitStack())
        stop = signals.enter_context(_stopped_by_signals())
        folder = data or Path(tempfile.mkdtemp(prefix="headway-demo-"))
        if data is None:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        troupe = Troupe(folder)
        stack.callback(troupe.end)
        ports = [port + i for i in range(PORTS) if port + i < 65_536] if port else [0]
        told = story(is_quick=length != "long", has_flood=length == "reported")
        stage = Stage(told, troupe.serve(folder, ports))
        stack.callback(stage.remote.close)
        held = _prepare(stage)
        _start(troupe, stage, stop, length)
        click.echo(_welcome(stage.url, held))
        _show(stage, troupe, stop, seconds)
        with stage.scene() as scene:
            Console(highlight=False).print(view.summary(scene))
        if after is not None and not stop.is_set():
            signals.close()
            troupe.dismiss("traffic")
            after(stage.url, folder)
    click.echo(f"All processes have ended; {_left(data)}.")


def _prepare(stage: Stage) -> str:
    """Makes the queues with all their rules; returns a job that is held."""
    remote = stage.remote
    hour = datetime.fromtimestamp(stage.began_s, tz=UTC).hour
    for name, wanted in rules(stage.story, hour).items():
        remote.put("v1", "queues", name, body=wanted)
    weight = {"weight": 2}
    remote.put("v1", "queues", "default", "tenants", TENANTS[0], body=weight)
    ticking = {"cron": "*/10 * * * * *", "job": {"kind": "heartbeat"}}
    remote.put("v1", "queues", "default", "schedules", "heartbeat", body=ticking)
    nightly = {"cron": "30 1 * * *", "zone": "Europe/London", "job": {"kind": "report"}}
    remote.put("v1", "queues", "report", "schedules", "nightly", body=nightly)
    job = {"kind": "report", "tenant": TENANTS[0], "payload": {"month": "2026-10"}}
    accepted = remote.post("v1", "queues", "report", "jobs", body=job)
    return str(accepted["jobs"][0]["id"])


def _start(troupe: Troupe, stage: Stage, stop: threading.Event, length: str) -> None:
    """Workers first; the story begins when somebody is there to hear it."""
    for number in range(WORKERS):
        troupe.start("worker", stage.url, f"worker-{number + 1}").listen(stage.tell)
    for _ in range(WORKERS):
        stage.ready(troupe, stop)
    troupe.start("traffic", stage.url, length).listen(stage.tell)
    match stage.ready(troupe, stop):
        case [_, float(began_s)]:
            stage.began_s = began_s


def _show(
    stage: Stage, troupe: Troupe, stop: threading.Event, seconds: float | None
) -> None:
    until_s = None if seconds is None else time.monotonic() + seconds
    console = Console(highlight=False)
    is_live = sys.stdout.isatty()
    with Live(console=console, auto_refresh=False, transient=True) as page:
        lined_s = time.monotonic() if not is_live else 0.0
        while not stop.wait(REFRESH_S):
            troupe.check()
            stage.look()
            now_s = time.monotonic()
            is_over = until_s is not None and now_s >= until_s
            with stage.scene() as scene:
                if is_live:
                    page.update(view.live(scene, console.width), refresh=True)
                elif now_s - lined_s >= LINE_S or is_over:
                    lined_s = now_s
                    click.echo(view.line(scene))
            if is_over:
                return


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    stop = threading.Event()
    before = {
        name: signal.signal(name, lambda *_: stop.set())
        for name in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _welcome(url: str, held: str) -> str:
    elsewhere = "" if url == URL else f"  export HEADWAY_SERVER={url}\n"
    return (
        f"Headway serves at {url}, with {WORKERS} worker processes and live traffic.\n"
        f"Try in another terminal:\n{elsewhere}"
        f"  curl -s {url}/v1/queues\n"
        "  headway queues\n"
        "  headway queue show webhook\n"
        "  headway running\n"
        f"  headway why {held}\n"
        "  headway dead list webhook\n"
        "  headway pause webhook; headway resume webhook\n"
        "Ctrl-C ends it.\n\n"
        f"The dashboard: {url}/\n"
    )


def _left(data: Path | None) -> str:
    return "nothing is left" if data is None else f"the store is in {data}"
