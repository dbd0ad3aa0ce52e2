"""The pytest plugin, in a pytest of its own."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHOP = """
import headway

app = headway.App("http://127.0.0.1:1")
sold = []


@app.job(queue="shop")
def sell(name: str) -> None:
    sold.append(name)


def order(name):
    sell.options(delay="1h").enqueue(name)
"""


class Project:
    """A folder with an app and tests, run by a pytest in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "shop.py").write_text(SHOP)
        self.configure("headway_app = shop:app")

    def configure(self, line: str) -> None:
        text = f"[pytest]\npythonpath = .\naddopts = --strict-markers\n{line}\n"
        (self.folder / "pytest.ini").write_text(text)

    def run(self, tests: str, *options: str) -> "subprocess.CompletedProcess[str]":
        (self.folder / "test_shop.py").write_text(tests)
        plugins = ("-p", "headway.pytest_plugin", "-p", "no:randomly")
        arguments = [sys.executable, "-m", "pytest", "-q", *plugins, *options]
        # Entry points of the environment are left out, so that it is loaded once.
        variables = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return subprocess.run(
            arguments,
            cwd=self.folder,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_fixtures_run_note_and_move_time(project: Project) -> None:
    run = project.run("""
import pytest
import shop


@pytest.fixture(autouse=True)
def fresh():
    shop.sold.clear()


def test_inline(headway_inline):
    shop.order("a")
    assert shop.sold == ["a"]
    headway_inline.assert_enqueued(shop.sell, "a")


def test_recorder(headway_recorder):
    shop.order("b")
    assert shop.sold == []
    assert headway_recorder.assert_enqueued(shop.sell, "b").spec.delay_ms == 3_600_000


def test_queue(headway_queue):
    shop.order("c")
    headway_queue.run_for("59m")
    assert shop.sold == []
    headway_queue.drain()
    assert shop.sold == ["c"]
""")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "3 passed" in run.stdout


def test_marker_and_fixture_say_which_app(project: Project) -> None:
    project.configure("")
    run = project.run("""
import headway, pytest
import shop

other = headway.App("memory:")


@other.job
def work() -> None:
    pass


@pytest.mark.headway("shop:app")
def test_by_place(headway_recorder):
    shop.order("a")
    assert len(headway_recorder.jobs) == 1


@pytest.mark.headway(other)
def test_by_value(headway_recorder):
    work.enqueue()
    assert len(headway_recorder.jobs) == 1


class TestOverridden:
    @pytest.fixture
    def headway_app(self):
        return other

    def test_by_fixture(self, headway_queue):
        work.enqueue()
        headway_queue.drain()
        assert headway_queue.counts("default").dead == 0
""")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "3 passed" in run.stdout


@pytest.mark.parametrize(
    ("line", "text"),
    [("", "which app?"), ("headway_app = shop:sold", "is no headway.App")],
)
def test_app_that_is_not_named_or_is_none_is_told(
    project: Project, line: str, text: str
) -> None:
    project.configure(line)
    run = project.run("def test_a(headway_inline): assert headway_inline")
    assert run.returncode != 0
    assert text in run.stdout + run.stderr


def test_tests_that_do_not_use_it_load_nothing_of_headway(project: Project) -> None:
    run = project.run("""
import sys


def test_loaded():
    loaded = {name for name in sys.modules if name.split(".")[0] == "headway"}
    assert loaded == {"headway", "headway.compiled", "headway.pytest_plugin"}
    assert "msgspec" not in sys.modules
""")
    assert run.returncode == 0, run.stdout + run.stderr


def test_package_tells_pytest_of_the_plugin() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    points = told["project"]["entry-points"]["pytest11"]
    assert points == {"headway": "headway.pytest_plugin"}
