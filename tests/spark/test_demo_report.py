"""From live traffic to a page, as `make pipeline` does it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.test_report_page import Parsed

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.xdist_group("spark")


def run(*words: object, folder: Path) -> str:
    found = subprocess.run(
        [sys.executable, "-m", "headway.cli.main", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(folder)},
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_traffic_becomes_a_page_and_its_lake_can_be_asked_again(tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "report.html"
    words = ("--data", data, "--port", 0, "--seconds", 8, "--report", out)
    said = run("demo", *words, folder=tmp_path)
    assert f"The report is in {out}" in said
    told = Parsed(out.read_text())
    shown = {one["id"] for one in told.named("section")}
    assert {"promises", "week", "waits", "runs"} <= shown
    for name in ("payment", "default", "webhook", "charge", "order", "notify"):
        assert any(name in text for text in told.texts), name
    assert re.search(r"of [\d,]+ promises were kept", " ".join(told.texts))

    again = tmp_path / "again.html"
    chosen = ("--from", "1h", "--title", "T&T")
    said = run(
        "report", "--lake", data / "lake", "--out", again, *chosen, folder=tmp_path
    )
    assert said.startswith(f"{again}: ")
    assert "T&T" in Parsed(again.read_text()).texts


def test_a_page_that_can_not_be_written_is_refused_before_the_show(
    tmp_path: Path,
) -> None:
    out = tmp_path / "none" / "report.html"
    found = subprocess.run(
        [sys.executable, "-m", "headway.cli.main", "demo", "--report", str(out)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert found.returncode == 2
    assert found.stderr == f"headway: {out}: there is no such folder\n"
    assert found.stdout == ""
