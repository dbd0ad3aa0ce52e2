"""Every block of code on our pages runs, or is read by what it is for."""

import configparser
import json
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest

from headway.cli.main import headway
from headway.server.handlers.table import ROUTES
from headway.server.metric_names import METRICS, NODE_METRICS
from headway.server.routing import Route
from headway.sim.plan.grid import load_grid
from headway.sim.scenario_file import load_scenario
from headway.wire.problems import Problem
from tests.docs.blocks import PAGES, ROOT, Block, blocks, commands
from tests.docs.stage import ON_POSTGRES, Stage

RUN = {"python", "sh", "console"}
READ = {"toml", "json", "ini", "http", "yaml"}
SHOWN = {"text"}
"""Output and drawings: nothing in it may look like something to type."""
TESTED_BY = {
    "docs/queries.md": "tests/spark/test_report_lake.py",
}
"""Pages whose SQL and Python need a lake: the test that runs them."""
SIGNATURES = {"docs/sdk-reference.md"}
"""Pages whose blocks are not programs, but what the code itself says."""
ON_SPARK = (
    "docs/pipeline.md",
    "docs/report.md",
    "docs/tables.md",
    "docs/mining.md",
    "docs/plan.md",
    "docs/spark.md",
    "docs/spark-worker.md",
)
"""Pages that need a Spark and minutes, in the order of what they make."""
TYPED = re.compile(r"\s*(\$ |(\.venv/bin/)?headway [a-z]|curl |make [a-z]|pip install)")
BLOCKS = {page.relative_to(ROOT).as_posix(): blocks(page) for page in PAGES}
ALL = [block for found in BLOCKS.values() for block in found]
LONG = sorted({block.page for block in ALL if block.long} - set(ON_SPARK))


def pages(is_on_spark: bool) -> list[str]:
    return sorted(
        page
        for page, found in BLOCKS.items()
        if any(block.language in RUN | READ for block in found)
        and page not in {*TESTED_BY, *SIGNATURES}
        and (page in ON_SPARK) == is_on_spark
    )


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def play(stage: Stage, page: str, *, is_long: bool = False) -> None:
    for block in BLOCKS[page]:  # files that a reader would have before
        if block.title.endswith((".toml", ".ini", ".yml")):
            (stage.folder / block.title).write_text(block.text)
    stage.enter(page)
    for block in BLOCKS[page]:
        if block.language in SHOWN or (block.long and not is_long):
            continue
        if block.language in READ:
            check(block, stage.folder)
        if block.language in RUN | {"sql"}:
            stage.run(block)


@pytest.mark.parametrize("page", pages(is_on_spark=False))
def test_blocks_of_the_page_run(stage: Stage, page: str) -> None:
    needs_curl = any("curl -s" in block.text for block in BLOCKS[page])
    if needs_curl and not shutil.which("curl"):
        pytest.skip("there is no curl")
    assert BLOCKS[page]
    play(stage, page)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_blocks_of_pages_on_spark_run(stage: Stage) -> None:
    """One after the other, with one server, one lake and one Spark."""
    stage.patience_s = 900
    assert pages(is_on_spark=True) == sorted(ON_SPARK)
    for page in ON_SPARK:
        play(stage, page, is_long=True)


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("page", LONG)
def test_blocks_that_take_long_run(stage: Stage, page: str) -> None:
    """The whole page, with what `make test` leaves out."""
    stage.patience_s = 1_800
    assert any(block.long for block in BLOCKS[page])
    play(stage, page, is_long=True)


@pytest.mark.parametrize("page", sorted({*ON_SPARK, *SIGNATURES}))
def test_blocks_that_are_not_run_here_can_be_read(page: str, tmp_path: Path) -> None:
    """What `make test` can say of them without a Spark."""
    for block in BLOCKS[page]:
        if block.language == "python":
            compile(block.text, str(block), "exec")
        elif block.language in READ:
            check(block, tmp_path)
    assert BLOCKS[page]


def test_every_block_says_what_it_is() -> None:
    known = RUN | READ | SHOWN
    for block in ALL:
        is_sql = block.language == "sql" and (
            block.page in {*TESTED_BY, *ON_SPARK, *ON_POSTGRES}
        )
        assert block.language in known or is_sql, f"{block}: {block.language}"


def test_what_is_only_shown_holds_nothing_to_type() -> None:
    typed = [
        f"{block}: {line}"
        for block in ALL
        if block.language in SHOWN and block.page != "docs/cli.md"
        for line in block.text.splitlines()
        if TYPED.match(line)
    ]
    assert typed == []


def test_pages_that_others_test_are_named_there() -> None:
    for page, test in TESTED_BY.items():
        assert Path(page).name in (ROOT / test).read_text()


def test_every_block_that_runs_in_long_tests_alone_is_listed() -> None:
    """docs/testing.md has them all, so that nobody leaves one out in silence."""
    listed = re.findall(
        r"^\| `([\w/.-]+)` \| (\d+) \| (.+?) \|$", TESTING, re.MULTILINE
    )
    counted: dict[tuple[str, str], int] = {}
    for block in ALL:
        if block.long:
            place = (block.page, block.long)
            counted[place] = counted.get(place, 0) + 1
    assert {(page, why): int(number) for page, number, why in listed} == counted


def test_every_marker_is_right_before_a_block() -> None:
    for page in PAGES:
        text = page.read_text()
        said = text.count("\n<!-- in make test-long: ")
        name = page.relative_to(ROOT).as_posix()
        marked = [one for one in BLOCKS[name] if one.long]
        assert said == len(marked), name


TESTING = (ROOT / "docs" / "testing.md").read_text()


def check(block: Block, folder: Path) -> None:
    """Reads data by the reader that it is meant for."""
    match block.language:
        case "toml":
            check_toml(block, folder)
        case "json":
            check_json(block)
        case "ini":
            configparser.ConfigParser().read_string(block.text)
        case "yaml":
            known = {*METRICS, *NODE_METRICS}
            used = re.findall(r"headway_\w+?(?=_bucket|\b)", block.text)
            assert used
            assert set(used) <= known, block
        case "http":
            method, path, *_ = block.text.split()
            assert route(method, path) is not None, block


def check_toml(block: Block, folder: Path) -> None:
    assert block.title, f"{block}: a file needs its name"
    file = folder / block.title
    file.write_text(block.text)
    if "grid" in block.title:
        assert load_grid(file)
    elif "[[workers]]" in block.text:
        assert load_scenario(file)
    else:
        assert tomllib.loads(block.text)


def check_json(block: Block) -> None:
    """`title="POST /v1/ack"` is a body, with a status behind it an answer."""
    json.loads(block.text)
    if not block.title:
        return
    if block.title == "problem":
        assert msgspec.json.decode(block.text, type=Problem)
        return
    method, path, *status = block.title.split()
    found = route(method, path)
    assert found is not None, block
    kind = found.answers[int(status[0])] if status else found.body
    msgspec.json.decode(block.text, type=kind)


def route(method: str, path: str) -> Route | None:
    for known in ROUTES:
        shape = re.sub(r"\\\{\w+\\\}", r"[^/]+", re.escape(known.path))
        if known.method == method and re.fullmatch(shape, path):
            return known
    return None


def test_commands_in_sentences_are_there() -> None:
    """`headway why ID` in a sentence names a command, and options that it has."""
    wrong = [
        f"{page.name}: {span}"
        for page in PAGES
        for span in re.findall(r"(?<!`)`(headway [a-z][^`]*)`(?!`)", page.read_text())
        if problem(span)
    ]
    assert wrong == []


def test_examples_of_the_command_line_are_there() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    examples = re.findall(r"^ +(headway [a-z].*)$", page, re.MULTILINE)
    assert len(examples) > 40
    assert [one for one in examples if problem(one)] == []


def problem(span: str) -> str:
    """What is wrong with a command that is only named; empty if nothing is."""
    words = span.split()[1:]
    command: click.Command = headway
    while isinstance(command, click.Group) and words:
        context = click.Context(command)
        inner = command.get_command(context, words[0])
        if inner is None:
            return f"no command {words[0]}"
        command, words = inner, words[1:]
    options = {name for one in command.params for name in one.opts + one.secondary_opts}
    asked = {
        word.partition("=")[0].strip("[]") for word in words if word.startswith("--")
    }
    return ", ".join(asked - options - {"--help"})


def test_shell_blocks_are_plain_enough_to_look_through() -> None:
    shells = [block for block in ALL if block.language in {"sh", "console"}]
    assert all(commands(block) for block in shells)
