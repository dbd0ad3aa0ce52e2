"""The `headway` command: its group, and the list of its subcommands."""

import click

from headway.cli.backup import backup
from headway.cli.demo import demo
from headway.cli.serve import serve
from headway.cli.simulate import simulate
from headway.cli.token import token
from headway.cli.verify import verify


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="headway", message="headway %(version)s")
def headway() -> None:
    """A durable job queue that keeps its promises.

    Every job says how long it may wait. Headway starts it in time, gives every
    tenant its fair share, and lets no flood cost anyone but the one who sends it.
    """


headway.add_command(backup)
headway.add_command(demo)
headway.add_command(serve)
headway.add_command(simulate)
headway.add_command(token)
headway.add_command(verify)


def main() -> None:
    """The entry point of the installed command."""
    headway(prog_name="headway")


if __name__ == "__main__":
    main()
