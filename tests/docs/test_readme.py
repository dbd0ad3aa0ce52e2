"""The README is short, and its examples print what they promise."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
LINES_MAX = 200


def block(language: str, number: int = 0) -> str:
    """One of the README's blocks of code in a language."""
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert len(found) > number, f"no {language} example"
    return found[number]


def test_first_example_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block("python"), "README.md", "exec"), {"__name__": "shop"})
    assert capsys.readouterr().out == "welcome, Ada\n"


def test_embedded_example_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block("python", 1), "README.md", "exec"), {})
    assert capsys.readouterr().out == "b'welcome, Ada' for acme\n"


def test_every_scenario_that_it_names_is_there() -> None:
    named = set(re.findall(r"`([a-z0-9-]+)`: ", README))
    there = {path.stem for path in (ROOT / "examples" / "scenarios").glob("*.toml")}
    assert named
    assert named <= there


def test_it_is_read_in_one_go() -> None:
    assert len(README.splitlines()) <= LINES_MAX
