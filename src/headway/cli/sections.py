"""The top group: commands by section, each imported when it is called."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from headway.cli.refused import Refused


class Sections(click.Group):
    """Names commands as `module:attribute`, and lists them by section."""

    def __init__(
        self, *args: Any, sections: Mapping[str, Mapping[str, str]], **values: Any
    ) -> None:
        super().__init__(*args, **values)
        self._sections = sections
        self._places = {
            name: place for named in sections.values() for name, place in named.items()
        }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = self._places.get(cmd_name)
        if place is None:
            return None
        module, _, attribute = place.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        width = formatter.width - 6 - max(map(len, self._places))
        for title, places in self._sections.items():
            rows = []
            for name in places:
                command = self.get_command(ctx, name)
                if command is not None:
                    rows.append((name, command.get_short_help_str(width)))
            with formatter.section(title):
                formatter.write_dl(rows)

    def make_context(self, *args: Any, **values: Any) -> click.Context:
        try:
            return super().make_context(*args, **values)
        except click.UsageError as error:
            raise _in_a_line(error) from error

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise _in_a_line(error) from error


def example(*commands: str) -> str:
    """The end of a help page: how a command is called."""
    return "\b\nExample:\n" + "\n".join(f"  {command}" for command in commands)


def _in_a_line(error: click.UsageError) -> click.ClickException:
    """A usage error as every other one is told; a group without a command helps."""
    if error.ctx is None or isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error
    text = error.format_message().rstrip(".")
    return Refused(f"{text}; see {error.ctx.command_path} --help")
