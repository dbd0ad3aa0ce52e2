"""Tables and lines for people. Nothing that comes from a job can act on the terminal."""

import os
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from shlex import quote
from typing import TYPE_CHECKING, Any

from headway.core.durations import readable_ms

if TYPE_CHECKING:  # rich takes longer to import than most commands take to run
    from rich.console import Console
    from rich.text import Text

NARROW = 160
"""Columns where the output goes to a file."""


def clean(text: object) -> str:
    """Control characters, escape sequences and the like as they would be typed."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text)
    )


def cell(value: object, style: str = "") -> "Text":
    """Data as plain text: its markup is not understood."""
    from rich.text import Text

    if isinstance(value, Text):
        return value
    if value is None:
        return Text("-", "dim")
    if isinstance(value, bool):
        return Text("yes" if value else "no", style)
    if isinstance(value, int):
        return Text(f"{value:,}", style)
    return Text(clean(value), style)


def print_table(
    heads: Iterable[str], rows: Iterable[Iterable[object]], *, empty: str = ""
) -> None:
    """Columns of numbers have a head that ends in a `#`, and stand to the right."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for head in heads:
        is_number = head.endswith("#")
        justify: Any = "right" if is_number else "left"
        table.add_column(
            head.rstrip("#"),
            justify=justify,
            no_wrap=is_number,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(cell(value) for value in row))
    if table.row_count or not empty:
        console().print(table)
    else:
        note(empty)


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Names and values, a line each; what is None is left out."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        if value is not None:
            table.add_row(cell(name), cell(value))
    console().print(table)


def heading(text: str) -> None:
    console().print(cell(text, "bold"))


def note(text: str) -> None:
    console().print(cell(text, "dim"))


def say(text: str) -> None:
    console().print(cell(text))


def more(following: str | None, option: str = "--after") -> None:
    """Says how the next page is called."""
    if following is not None:
        note(f"there is more: {option} {quote(following)}")


def console() -> "Console":
    from rich.console import Console

    is_seen = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, width=None if is_seen else NARROW)


def moment(at_ms: int | None, now_ms: int | None = None) -> str | None:
    """Local time, and how far away that is: `14:03:05 (in 12 s)`."""
    if at_ms is None:
        return None
    now_ms = _now_ms() if now_ms is None else now_ms
    try:
        at, now = _local(at_ms), _local(now_ms)
    except (OverflowError, ValueError, OSError):
        return str(at_ms)
    form = "%H:%M:%S" if at.date() == now.date() else "%Y-%m-%d %H:%M:%S"
    return f"{at.strftime(form)} ({relative(at_ms, now_ms)})"


def relative(at_ms: int, now_ms: int) -> str:
    away_ms = at_ms - now_ms
    if abs(away_ms) < 1_000:
        return "now"
    text = readable_ms(abs(away_ms))
    return f"in {text}" if away_ms > 0 else f"{text} ago"


def several(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _local(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1_000, tz=UTC).astimezone()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
