"""`headway compile`: the core as machine code."""

from pathlib import Path

import click

from headway import compiled
from headway.cli.refused import Refused, refusing
from headway.cli.sections import example


@click.command("compile", epilog=example("headway compile"))
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    help=f"Where to, instead of beside the sources; {compiled.SWITCH} names it then.",
)
@click.option(
    "--check",
    "is_check",
    is_flag=True,
    help="Say what is in use; exit 1 if interpreted.",
)
@click.option("--remove", "is_remove", is_flag=True, help="Remove what was compiled.")
def compile_core(into: Path | None, is_check: bool, is_remove: bool) -> None:
    """Compile the core, for half the CPU of a decision.

    It takes the extra `headway[compile]`, a C compiler, the headers of Python and a
    minute. What has been compiled is used by whatever starts from then on, as long as
    its sources are what they were; HEADWAY_COMPILED=0 in the environment leaves it aside.
    """
    from headway.compiled.build import CannotCompile, build, remove

    if is_check:
        click.echo("compiled" if compiled.is_used() else "interpreted")
        if not compiled.is_used():
            raise SystemExit(1)
        return
    with refusing():
        place = into or compiled.folder()
        if place is None:
            raise Refused(f"{compiled.SWITCH}=0 says that nothing is to be compiled")
        try:
            if is_remove:
                click.echo(
                    f"{place}: {'removed' if remove(place) else 'nothing there'}"
                )
                return
            build(place, click.echo)
        except CannotCompile as error:
            raise Refused(str(error)) from error
    click.echo(f"{place}: compiled, and used from now on by what starts")
