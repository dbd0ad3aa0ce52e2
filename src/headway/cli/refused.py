"""How a command says no: one line on stderr, and exit status 2."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click


class Refused(click.ClickException):
    """Something the user can put right."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        line = "".join(c if c.isprintable() else " " for c in self.format_message())
        click.echo(f"headway: {line}", file=file, err=file is None)


@contextmanager
def refusing() -> Iterator[None]:
    """Turns errors that are the user's to mend into one line each."""
    try:
        yield
    except BrokenPipeError:
        raise  # whoever reads has seen enough: click ends without a word
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise Refused(f"{place}{error.strerror or error}") from error
    except Exception as error:
        if isinstance(error, _mendable()):
            raise Refused(str(error)) from error
        raise


def _mendable() -> tuple[type[Exception], ...]:
    """Imported once something has failed: a command that works starts without them."""
    from headway.core.errors import RuleBroken
    from headway.runtime.errors import RuntimeFailure
    from headway.sim.chart import ChartError
    from headway.sim.scenario import ScenarioError
    from headway.spark.errors import PipelineError
    from headway.store.errors import StoreError

    return (
        ScenarioError,
        ChartError,
        RuleBroken,
        StoreError,
        RuntimeFailure,
        PipelineError,
    )
