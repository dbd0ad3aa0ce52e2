"""What the command line says of itself."""

import os
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from headway.cli.main import SECTIONS, headway
from tests.cli.conftest import ROOT


def commands(group: click.Group, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


OTHERS = {"serve", "token"}
"""They ask no server, and their options say it all."""
ALL = list(commands(headway, ()))


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_explains_itself_with_an_example(path: tuple[str, ...]) -> None:
    done = CliRunner().invoke(headway, [*path, "--help"])
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    if path[0] not in OTHERS:
        assert f"Example:\n    headway {' '.join(path)}" in done.stdout


def test_the_help_lists_all_commands_by_section() -> None:
    done = CliRunner().invoke(headway, ["--help"])
    assert done.exit_code == 0
    for title, names in SECTIONS.items():
        part = done.stdout.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        listed = [line.split()[0] for line in part.splitlines()]
        assert listed == list(names)
    assert "..." not in done.stdout.partition("Options")[2]


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["queue", "nonsense"], ["job", "show"], ["--nonsense"]]
)
def test_a_wrong_call_is_told_in_one_line(arguments: list[str]) -> None:
    done = CliRunner().invoke(headway, arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("headway: ")
    assert done.stderr.count("\n") == 1


def test_no_command_is_slowed_down_by_what_another_one_needs() -> None:
    names = {
        place.partition(":")[0] for one in SECTIONS.values() for place in one.values()
    }
    code = (
        f"import sys, {', '.join(sorted(names))}\n"
        "print([name for name in sys.modules if name in ('rich', 'headway.server')])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        env=environment,
        text=True,
    )
    assert done.stdout == "[]\n", done.stderr


def test_a_group_without_a_command_helps() -> None:
    done = CliRunner().invoke(headway, ["queue"])
    assert "Usage:" in done.output
    assert "show" in done.output
