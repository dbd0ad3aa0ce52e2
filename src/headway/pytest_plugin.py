"""Fixtures for the tests of applications; pytest finds them by itself.

Nothing of Headway is loaded before a test asks for one of them.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headway.testing import Recorder, VirtualQueue
    from headway.worker.app import App


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "headway_app", "Where the app is, as MODULE:APP, such as shop.jobs:app"
    )


def pytest_configure(config: pytest.Config) -> None:
    line = "headway(app): the app of the headway fixtures, or where it is: MODULE:APP"
    config.addinivalue_line("markers", line)


@pytest.fixture
def headway_app(request: pytest.FixtureRequest) -> "App":
    """The app under test: as a marker says, or the configuration. May be overridden."""
    from pkgutil import resolve_name

    from headway.worker.app import App

    marker = request.node.get_closest_marker("headway")
    found = marker.args[0] if marker is not None and marker.args else None
    if found is None:
        found = request.config.getini("headway_app")
    if not found:
        text = (
            "which app? Say headway_app = MODULE:APP in the configuration of pytest, "
            "@pytest.mark.headway(app), or override the fixture headway_app"
        )
        raise pytest.UsageError(text)
    app = resolve_name(found) if isinstance(found, str) else found
    if not isinstance(app, App):
        raise pytest.UsageError(f"{found!r} is no headway.App")
    return app


@pytest.fixture
def headway_inline(headway_app: "App") -> Iterator["Recorder"]:
    """Jobs run at once, in whoever enqueues them, and are noted."""
    from headway import testing

    with testing.inline(headway_app) as recorder:
        yield recorder


@pytest.fixture
def headway_recorder(headway_app: "App") -> Iterator["Recorder"]:
    """Jobs are noted and do not run."""
    from headway import testing

    with testing.recording(headway_app) as recorder:
        yield recorder


@pytest.fixture
def headway_queue(headway_app: "App") -> Iterator["VirtualQueue"]:
    """The real queue in virtual time: `headway_queue.drain()`."""
    from headway import testing

    with testing.virtual_time(headway_app) as queue:
        yield queue
