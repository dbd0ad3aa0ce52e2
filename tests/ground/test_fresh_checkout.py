"""The set-up for real, in a checkout of its own: installs from the package index."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.source import listed
from tools import bootstrap, pip_wheel
from tools.bootstrap import Checkout

ROOT = Path(__file__).resolve().parents[2]
BASE = Path(getattr(sys, "_base_executable", sys.executable))
KEPT = ("PIP_", "SSL_CERT", "REQUESTS_CA", "http", "HTTP", "no_proxy", "NO_PROXY")
"""How this machine reaches its package index; all else of the environment is dropped."""

pytestmark = pytest.mark.long


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root = tmp_path / "checkout"
    for path in listed(ROOT):
        if (ROOT / path).is_file():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, root / path)
    return Checkout(root)


def make(checkout: Checkout, *targets: str) -> subprocess.CompletedProcess[str]:
    environment = {key: os.environ[key] for key in os.environ if key.startswith(KEPT)}
    environment |= {"HOME": str(checkout.root), "PATH": f"{BASE.parent}:/usr/bin:/bin"}
    command = ["make", *targets, f"PYTHON={BASE}"]
    return subprocess.run(
        command,
        cwd=checkout.root,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )


def test_make_run_needs_python_and_make_only(checkout: Checkout) -> None:
    result = make(checkout, "run", "DEMO=--seconds 2 --port 0")
    assert result.returncode == 0, result.stdout + result.stderr
    packages = {path.name for path in checkout.venv.glob("lib/python*/site-packages/*")}
    assert "click" in packages
    assert packages.isdisjoint({"pytest", "mypy", "pyspark"})
    again = make(checkout, "run", "DEMO=--seconds 2 --port 0")
    assert again.returncode == 0
    assert "installing" not in again.stderr


@pytest.mark.parametrize("name", bootstrap.WAYS)
def test_way_makes_an_environment_that_can_install(
    checkout: Checkout, name: str
) -> None:
    try:
        bootstrap.WAYS[name](checkout, BASE)
    except pip_wheel.NotHere as reason:
        pytest.skip(f"{name}: {reason}")
    bootstrap.install(checkout, bootstrap.PROFILES["run"])
    assert (checkout.venv / "bin" / "headway").exists()
