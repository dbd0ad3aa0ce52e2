"""Takes pictures of every page of the dashboard, light and dark, off a live server.

`python -m tools.screenshots` starts the demonstration, waits until an overload is under
way, and writes small PNGs to out/screenshots; those that the docs show go to docs/images,
too. `--url` takes them of a server that runs already.
"""

import argparse
import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

from playwright.sync_api import Browser, Page, sync_playwright

from tools.chromium import launched

SETTLED_S = 118.0
"""By then the demonstration's rush is over, and what was put off for it is late."""
DEMO = "headway.cli.main demo --port 0"
READY_S = 60.0
SIZE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
THEMES = ("light", "dark")
IMAGES = Path("docs/images")
KEPT = (
    "overview-light",
    "overview-dark",
    "queue-light",
    "job-dark",
    "dead-light",
    "what-if-light",
    "phone-dark",
)
"""Those that pages of the docs show."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/screenshots"))
    parser.add_argument("--url", help="of a server that runs already")
    parser.add_argument("--only", nargs="*", help="names of pages")
    parser.add_argument("--settle", type=float, default=SETTLED_S)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        url = options.url or stack.enter_context(demonstration(options.settle))
        playwright = stack.enter_context(sync_playwright())
        browser = launched(playwright)
        assert browser is not None, "there is no Chromium on this machine"
        stack.callback(browser.close)
        take(browser, url, options.out, options.only)
    for name in KEPT:
        if (options.out / f"{name}.png").exists():
            shutil.copy(options.out / f"{name}.png", IMAGES / f"dashboard-{name}.png")


@contextlib.contextmanager
def demonstration(settle_s: float) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="headway-pictures-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", *f"{DEMO} --data {folder}".split()],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if "http://" in line)
            found = re.search(r"http://[^\s,]+", line)
            assert found is not None, line
            time.sleep(settle_s)
            yield found[0]
        finally:
            process.terminate()
            process.communicate(timeout=READY_S)


def take(browser: Browser, url: str, out: Path, only: list[str] | None) -> None:
    """Every page in both themes, and the overview as a phone has it."""
    for theme in THEMES:
        for name, path in pages(url).items():
            if not only or name in only:
                picture(browser, url + path, out / f"{name}-{theme}.png", theme, SIZE)
        if not only or "phone" in only:
            picture(browser, url + "/#/", out / f"phone-{theme}.png", theme, PHONE)


def pages(url: str) -> dict[str, str]:
    """Where each page is, with a queue and jobs that have something to show."""
    found = {
        "overview": "/#/",
        "queues": "/#/queues",
        "queue": "/#/queue/webhook",
        "search": "/#/search?queue=webhook&all=yes",
        "running": "/#/running",
        "waiting": "/#/waiting",
        "dead": "/#/dead/webhook",
        "schedules": "/#/schedules",
        "acts": "/#/acts",
        "what-if": "/#/what-if",
        "nodes": "/#/nodes",
        "node": "/#/node",
    }
    # The newest: it is still ready when its picture is taken.
    newest = f"{url}/v1/jobs?queue=webhook&state=ready&limit=1"
    with urlopen(newest) as answer:
        job = re.search(rb'"id":"([^"]+)"', answer.read())
    if job is not None:
        found = {"job": f"/#/job/{job[1].decode()}", **found}
    return found


def picture(
    browser: Browser, address: str, file: Path, theme: str, size: dict[str, int]
) -> None:
    context = browser.new_context(
        viewport={"width": size["width"], "height": size["height"]},
        color_scheme="dark" if theme == "dark" else "light",
    )
    with contextlib.closing(context):
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("main[data-page] h1")
        if "what-if" in address:
            simulate(page)
        page.wait_for_selector("[data-live=live]", state="attached")
        page.screenshot(path=file)
    shrink(file)


def simulate(page: Page) -> None:
    page.get_by_role("button", name="Simulate").click()
    page.wait_for_selector("main svg.chart")


def shrink(file: Path) -> None:
    """Few colours are enough for a page, and make a picture a third of its size."""
    from PIL import Image

    with Image.open(file) as image:
        small = image.convert("RGB").quantize(colors=256, dither=Image.Dither.NONE)
        small.save(file, optimize=True)


if __name__ == "__main__":
    main()
