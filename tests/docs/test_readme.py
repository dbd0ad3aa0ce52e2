"""The README's examples work as they are printed."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from headway.cli.main import headway

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def block(language: str, number: int = 0) -> str:
    """One of the README's blocks of code in a language."""
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert len(found) > number, f"no {language} example"
    return found[number]


def test_scenario_example_runs(tmp_path: Path) -> None:
    scenario = tmp_path / "mine.toml"
    scenario.write_text(block("toml"))
    chart = tmp_path / "mine.html"
    arguments = ["simulate", str(scenario), "--chart", str(chart)]
    result = CliRunner().invoke(headway, arguments)
    assert result.exit_code == 0, result.output
    assert "payment" in result.output
    assert chart.read_text().lower().startswith("<!doctype html>")


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


def test_core_example_runs() -> None:
    names: dict[str, object] = {}
    exec(compile(block("python", 2), "README.md", "exec"), names)
    job = names["job"]
    assert getattr(job, "state", None) == "done"


def test_every_scenario_that_it_names_is_there() -> None:
    named = set(re.findall(r"`([a-z0-9-]+)`: ", README))
    there = {path.stem for path in (ROOT / "examples" / "scenarios").glob("*.toml")}
    assert named
    assert named <= there
