"""`headway pause`, `resume`, `block` and `unblock`: whether a queue may start jobs."""

from typing import Final

import click

from headway.cli.asking import Shown, asks
from headway.cli.page import say
from headway.cli.queues import held
from headway.cli.remote import Remote
from headway.cli.sections import example

_HELP: Final = {
    "pause": "Start nothing of QUEUE until it is resumed.",
    "resume": "Lift a pause; a block stays.",
    "block": "The operator's pause: a resume does not lift it.",
    "unblock": "Lift a block; a pause stays.",
}


def _command(verb: str) -> click.Command:
    @click.argument("queue")
    @click.option("--reason", help="Why, for whoever looks at it later.")
    @asks
    def hold(remote: Remote, queue: str, reason: str | None) -> Shown:
        if reason is not None:
            remote.because(reason)
        found = remote.post("v1", "queues", queue, verb)
        return lambda: say(f"{queue} is {held(found) or 'open'}")

    return click.command(
        verb, help=_HELP[verb], epilog=example(f"headway {verb} mail")
    )(hold)


pause: Final = _command("pause")
resume: Final = _command("resume")
block: Final = _command("block")
unblock: Final = _command("unblock")
