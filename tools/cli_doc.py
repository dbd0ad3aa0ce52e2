"""Writes docs/cli.md from the commands themselves."""

from collections.abc import Iterator
from pathlib import Path

import click

from headway.cli.main import SECTIONS, headway

PAGE = Path("docs/cli.md")
WIDTH = 88

HEAD = """# The command line

Written by `make docs` from the commands' own help, which `--help` shows, too.

Commands that ask a server take it from `--server` or `$HEADWAY_SERVER`, and a bearer token
from `--token` or `$HEADWAY_TOKEN`. With `--json` they print the server's answer and nothing
else. An error is one line on stderr, with exit status 2.

Durations are written as `500ms`, `5s`, `2m`, `1h` or `1d`, and times as
`2026-11-27T08:00+01:00`; without a zone they are in that of the machine. What a job brings
along, such as a payload, an error or a name, is shown with its control characters escaped.
"""


def page() -> str:
    parts = [HEAD]
    context = click.Context(headway, info_name="headway", **headway.context_settings)
    for title, names in SECTIONS.items():
        parts.append(f"\n## {title}\n")
        for name in names:
            command = headway.get_command(context, name)
            assert command is not None, name
            parts += described(command, click.Context(command, context, name))
    return "".join(parts)


def described(command: click.Command, context: click.Context) -> Iterator[str]:
    """The help of a command; that of a group by its commands."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.commands[name]
            yield from described(inner, click.Context(inner, context, name))
        return
    formatter = click.HelpFormatter(width=WIDTH)
    command.format_help(context, formatter)
    lines = (line.rstrip() for line in formatter.getvalue().splitlines())
    text = "\n".join(lines).strip()
    yield f"\n### {context.command_path}\n\n```text\n{text}\n```\n"


def main() -> None:
    PAGE.write_text(page())
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
