"""A progress bar where somebody is watching; never among what is printed."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

Advance = Callable[[str, int, int], None]
"""Told what is under way, how much of it is done, and how much there is."""


@contextmanager
def watching(*, is_quiet: bool) -> Iterator[Advance]:
    """One bar for each thing that is told of."""
    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=is_quiet or not sys.stderr.isatty(),
    )
    with progress:
        tasks = {}

        def advance(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done, total=total)

        yield advance
