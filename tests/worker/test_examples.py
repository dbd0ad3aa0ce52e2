"""The examples run as they are, and say what they promise."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SAYS = {
    "payments": ["charged order 1: 9.90", "sent the receipt of order 2"],
    "fair_import": ["1003 rows imported; the small customer's last was number "],
    "partner": ["east: at most 4 at", "north: at most 3 at", "west: at most 3 at"],
    "throttler": ["30 orders and 3 reports", "0 jobs ran beside a report"],
    "night": ["patched products"],
    "callback": ["order 17 is on its way", "the carrier's call: repeated"],
    "kafka_reply": [f"order {order} is on its way" for order in range(3)],
    "report": ["the test report is written"],
}


def run(name: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        cwd=folder,
        env=os.environ | {"HEADWAY_URL": f"sqlite:///{folder}/jobs.db"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", SAYS)
def test_example_runs(name: str, tmp_path: Path) -> None:
    said = run(name, tmp_path)
    for text in SAYS[name]:
        assert text in said


def test_small_customer_does_not_wait_behind_the_large_one(tmp_path: Path) -> None:
    assert int(run("fair_import", tmp_path).split()[-1]) < 20


def test_first_lines_of_the_guide_run(tmp_path: Path) -> None:
    guide = (EXAMPLES.parent / "docs" / "sdk.md").read_text()
    script = guide.split("```python\n")[1].split("```")[0]
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    # Handlers print from several threads: two lines may come before their ends.
    greeted = re.findall(r"welcome, (Ada|Eve|you)", done.stdout)
    assert sorted(greeted) == ["Ada", "Eve", "you", "you"]


def test_every_example_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SAYS)
