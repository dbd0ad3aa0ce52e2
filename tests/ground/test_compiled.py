"""`headway compile`: what is compiled, when it is used, and what it says otherwise."""

import ast
import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headway import compiled
from headway.cli.main import headway as command
from tests.ground import many_tenants

ROOT = Path(__file__).parent.parent.parent
SCENARIOS = sorted((ROOT / "examples" / "scenarios").glob("*.toml"))


def call(*arguments: object) -> Result:
    return CliRunner().invoke(command, list(map(str, arguments)))


def run(
    switch: Path | str, *arguments: str, **more: str
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, compiled.SWITCH: str(switch), **more}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("module", compiled.MODULES)
def test_what_is_compiled_defines_no_record(module: str) -> None:
    """A compiled class drops `frozen=True` and its like without a word."""
    source = compiled.SOURCES.joinpath(*module.split(".")).with_suffix(".py")
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ClassDef):
            assert not node.keywords, node.name
            bases = {ast.unparse(base) for base in node.bases}
            assert "msgspec.Struct" not in bases, node.name


def test_a_build_counts_as_long_as_its_sources_are_what_they_were(
    tmp_path: Path,
) -> None:
    assert not compiled.is_fresh(tmp_path)
    (tmp_path / compiled.STAMP).write_text(compiled.stamp())
    assert compiled.is_fresh(tmp_path)
    (tmp_path / compiled.STAMP).write_text(compiled.stamp().replace("book ", "book 0"))
    assert not compiled.is_fresh(tmp_path)


def test_nothing_is_removed_that_is_no_build(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear")
    told = call("compile", "--into", tmp_path, "--remove")
    assert told.exit_code == 0
    assert told.stdout == f"{tmp_path}: nothing there\n"
    assert (tmp_path / "letter").exists()


def test_what_runs_interpreted_says_so() -> None:
    told = run("0", "-m", "headway.cli.main", "compile", "--check")
    assert (told.returncode, told.stdout) == (1, "interpreted\n")


def test_where_nothing_is_to_be_compiled_nothing_is() -> None:
    told = run("0", "-m", "headway.cli.main", "compile")
    assert told.returncode == 2
    assert f"{compiled.SWITCH}=0" in told.stderr


def test_without_a_c_compiler_it_says_what_to_install(tmp_path: Path) -> None:
    told = run(
        "0",
        "-m",
        "headway.cli.main",
        "compile",
        "--into",
        str(tmp_path / "built"),
        PATH=str(tmp_path),
        CC="no-such-compiler",
    )
    assert told.returncode == 2
    assert "no C compiler" in told.stderr
    assert "package gcc" in told.stderr
    assert not (tmp_path / "built").exists()


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear")
    told = call("compile", "--into", tmp_path)
    assert told.exit_code == 2
    assert "no build: name another folder" in told.stderr
    assert (tmp_path / "letter").exists()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("compiled") / "built"
    with contextlib.chdir(place.parent):
        told = call("compile", "--into", place.name)
    if "no C compiler" in told.stderr or "Python.h" in told.stderr:
        pytest.skip(told.stderr.strip())
    assert told.exit_code == 0, told.output
    return place


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_a_build_is_used_by_what_starts(built: Path) -> None:
    told = run(built, "-m", "headway.cli.main", "compile", "--check")
    assert (told.returncode, told.stdout) == (0, "compiled\n")
    shown = "import headway.core.partition as one; print(one.__file__)"
    assert run(built, "-c", shown).stdout.startswith(str(built))


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.stem)
def test_compiled_or_not_every_scenario_ends_alike(built: Path, scenario: Path) -> None:
    digests = []
    for switch in ("0", built):
        call = ("-m", "headway.cli.main", "simulate", str(scenario), "--json")
        told = run(switch, *call)
        assert told.returncode == 0, told.stderr
        digests.append(json.loads(told.stdout)["digest"])
    assert digests[0] == digests[1]


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("limits", many_tenants.LIMITS)
def test_what_is_looked_at_ahead_starts_as_it_would_have(
    built: Path, limits: str
) -> None:
    """The one module that is C, at work: it is there, and nothing changes by it."""
    told = [
        run(switch, "-m", "tests.ground.many_tenants", limits)
        for switch in ("0", built)
    ]
    assert [one.stderr for one in told] == ["", ""]
    plain, ahead = (one.stdout.splitlines() for one in told)
    assert (plain[0], ahead[0]) == ("looks ahead: False", "looks ahead: True")
    assert plain[1:] == ahead[1:]


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_a_build_without_the_modules_in_c_does_as_well(
    built: Path, tmp_path: Path
) -> None:
    """As it is where a compiler could not make it."""
    place = tmp_path / "built"
    shutil.copytree(built, place)
    for module in compiled.BY_HAND:
        (place / compiled.file_of(module)).unlink()
    told = run(place, "-m", "tests.ground.many_tenants", "none")
    assert told.stdout.startswith("looks ahead: False\nstarted")
    shown = "import headway.core.partition as one; print(one.__file__)"
    assert run(place, "-c", shown).stdout.startswith(str(place))


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_the_suites_of_core_and_runtime_pass_compiled(built: Path) -> None:
    """All but the tests that change a module from outside."""
    names = ("core", "runtime", "store", "sim", "faults", "server/test_http.py")
    suites = [f"tests/{name}" for name in names]
    told = run(built, "-m", "pytest", "-q", "-n", "2", "-m", "not long", *suites)
    assert told.returncode == 0, told.stdout[-4_000:]
