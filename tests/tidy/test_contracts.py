"""The import contracts hold, and would catch the core reading a clock."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PURE = {"asyncio", "os", "random", "socket", "sqlite3", "threading", "time", "uuid"}
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    """Runs the contracts of a checkout against the package in its own src."""
    code = f"import sys; sys.path.insert(0, {str(root / 'src')!r}); {LINT}"
    command = [sys.executable, "-c", code, "--no-cache"]
    return subprocess.run(
        command, cwd=root, check=False, capture_output=True, text=True
    )


def copy(root: Path) -> None:
    shutil.copytree(ROOT / "src", root / "src")
    shutil.copy(ROOT / "pyproject.toml", root)


def test_import_contracts_hold() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_contract_catches_a_clock_in_the_core(tmp_path: Path) -> None:
    copy(tmp_path)
    clock = tmp_path / "src/headway/core/clock.py"
    clock.write_text('"""A clock."""\n\nimport time\n\nNOW = time.time\n')
    result = lint(tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "headway.core.clock -> time" in result.stdout


def test_contract_catches_the_core_importing_an_upper_layer(tmp_path: Path) -> None:
    copy(tmp_path)
    upward = tmp_path / "src/headway/core/upward.py"
    upward.write_text('"""Upward."""\n\nimport headway.sim\n\nUP = headway.sim\n')
    result = lint(tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "headway.core.upward -> headway.sim" in result.stdout


def test_contract_of_the_core_names_every_impure_module() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    forbidden = {
        module
        for contract in contracts
        if contract["type"] == "forbidden"
        and "headway.core" in contract["source_modules"]
        for module in contract["forbidden_modules"]
    }
    assert forbidden >= PURE
