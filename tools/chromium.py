"""The machine's own Chromium, driven by Playwright; nothing is downloaded for it."""

import os
import shutil

from playwright.sync_api import Browser, Playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def found() -> str | None:
    """Where it is; CHROMIUM says so if it is in no usual place."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


def launched(playwright: Playwright) -> Browser | None:
    path = found()
    if path is None:
        return None
    # Inside containers there is neither a sandbox for a browser nor much shared memory.
    options = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
    return playwright.chromium.launch(executable_path=path, args=options)
