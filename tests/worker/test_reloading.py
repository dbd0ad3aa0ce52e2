"""Workers in development: changed code is run, broken code is waited for."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.core.spec import JobSpec
from headway.worker.fleet import Fleet
from headway.worker.reloading import Watch, files_of, project_files
from tests.server.process import command
from tests.worker.places import PATIENCE_S, until

SHOP = """
import logging, headway
from goods import NAME

app = headway.App("sqlite:///jobs.db")


@app.job(queue="q")
def sell() -> None:
    with open("notes", "a") as notes:
        notes.write(NAME + "\\n")
"""


class Shop:
    """A project whose worker runs in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "shop.py").write_text(SHOP)

    def write(self, text: str, number: int) -> None:
        """Changes the module that the app imports; each time a second later."""
        path = self.folder / "goods.py"
        fresh = path.with_suffix(".new")
        fresh.write_text(text)
        os.utime(fresh, (1_000_000 + number, 1_000_000 + number))
        fresh.replace(path)

    def sell(self) -> None:
        with headway.App(f"sqlite:///{self.folder}/jobs.db") as app:
            spec = JobSpec(kind="sell", payload=b"{}", is_json=True)
            app.ports.blocking().enqueue("q", [spec])

    def text(self, name: str) -> str:
        path = self.folder / name
        return path.read_text() if path.exists() else ""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.fixture
def worker(shop: Shop) -> Iterator["subprocess.Popen[bytes]"]:
    shop.write("NAME = 'one'", 1)
    with (shop.folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command("worker", "shop:app", "--reload", "--grace", "1s"),
            cwd=shop.folder,
            stderr=log,
            stdout=subprocess.DEVNULL,
        )
    yield process
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()


def test_changed_code_is_run_and_broken_code_is_waited_for(
    shop: Shop, worker: "subprocess.Popen[bytes]"
) -> None:
    shop.sell()
    until(lambda: shop.text("notes") == "one\n")
    shop.write("NAME = 'two'", 2)
    until(lambda: shop.text("log").count('the worker starts"') == 2)
    shop.sell()
    until(lambda: shop.text("notes") == "one\ntwo\n")
    shop.write("NAME = ", 3)
    until(lambda: "can't be loaded" in shop.text("log"))
    shop.sell()
    shop.write("NAME = 'three'", 4)
    until(lambda: shop.text("notes") == "one\ntwo\nthree\n")
    # Neither change was counted as a process that died.
    assert "another starts" not in shop.text("log")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_S) == 0


def test_watch_sees_a_change_and_forgives_a_file_that_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("1")
    watch = Watch(lambda: [str(file), str(tmp_path / "never.py")])
    assert watch.changed() is None
    file.unlink()
    assert watch.changed() is None
    file.write_text("2")
    os.utime(file, (1, 1))
    assert watch.changed() == str(file)


def test_files_of_the_project_are_watched_and_installed_ones_are_not() -> None:
    files = project_files()
    assert __file__ in files
    assert pytest.__file__ not in files
    assert subprocess.__file__ not in files


def test_failed_import_names_its_files(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    with pytest.raises(SyntaxError) as raised:
        compile("x =", str(file), "exec")
    assert files_of(raised.value) == {str(file), __file__}


def test_process_that_starts_while_its_fleet_is_told_to_stop_is_stopped_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def told(*args: Any, **kwargs: Any) -> "subprocess.Popen[bytes]":
        signal.raise_signal(signal.SIGTERM)
        started.append(real(*args, **kwargs))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", told)
    Fleet(["sleep", str(PATIENCE_S)], 1).run()
    assert [process.returncode for process in started] == [-signal.SIGTERM]
