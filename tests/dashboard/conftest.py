"""One browser and one server for all tests of a module."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.dashboard.tab import Tab
from tests.server.process import Served
from tools.chromium import found, launched

Open = Callable[..., Tab]
"""Opens a page of a server; by keyword: theme, token, width."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if found() is None:
        pytest.skip("there is no Chromium on this machine")
    with sync_playwright() as playwright:
        started = launched(playwright)
        assert started is not None
        yield started
        started.close()


@contextmanager
def serving(data: Path, *options: str) -> Iterator[Served]:
    """A server that is stopped whatever happens."""
    served = Served(data, *options)
    try:
        yield served
    finally:
        served.stop()


@pytest.fixture
def tabs(browser: Browser) -> Iterator[Open]:
    """What a page complains about, or runs that it should not, fails the test."""
    opened: list[Tab] = []

    def tab(served: Served, path: str = "/#/", **options: Any) -> Tab:
        opened.append(Tab(browser, served.address, **options))
        opened[-1].go(path)
        return opened[-1]

    yield tab
    complaints = [line for one in opened for line in one.close()]
    assert complaints == []
