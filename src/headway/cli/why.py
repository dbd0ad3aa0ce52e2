"""`headway why`: what keeps a job from running, in words."""

import re
from shlex import quote
from typing import Any, Final

import click

from headway.cli.asking import Shown, asks
from headway.cli.page import heading, moment, note, say, several
from headway.cli.remote import Remote
from headway.cli.sections import example
from headway.core.durations import readable_ms

HELP: Final = {
    "queue_paused": "headway resume {queue}",
    "queue_blocked": "headway unblock {queue}",
    "tenant_paused": "headway tenant set {queue} {tenant} --resume",
    "limit": "headway queue show {queue}",
}
"""What lifts a reason, or shows more of it."""
_MOMENT: Final = re.compile(r"\b[0-9]{12,15}\b")


@click.command(epilog=example("headway why p1_17"))
@click.argument("id_", metavar="ID")
@asks
def why(remote: Remote, id_: str) -> Shown:
    """Say why a job is not running.

    What stops it, who holds what it waits for, until when, and how many are before it."""
    found = remote.get("v1", "jobs", id_, "why")
    return lambda: _show(found)


def _show(found: dict[str, Any]) -> None:
    of = f" for {found['tenant']}" if found["tenant"] else ""
    promise = readable_ms(found["slo_ms"])
    heading(f"{found['id']} of {found['queue']}{of}: {found['state']}")
    note(f"it may wait {promise} once it is ready")
    is_several = len(found["reasons"]) > 1
    for number, reason in enumerate(found["reasons"]):
        lead = "first: " if is_several and not number else ""
        say(f"- {lead}{_told(reason['text'])}")
        until_ms = reason["until_ms"]
        if until_ms is not None and str(until_ms) not in reason["text"]:
            say(f"  until {moment(until_ms)}")
        if reason["holders"]:
            say(f"  held by {', '.join(reason['holders'])}")
        if reason["rule"] in HELP:
            names = {key: quote(found[key]) for key in ("queue", "tenant")}
            note(f"  see: {HELP[reason['rule']].format_map(names)}")
    if found["ahead"]:
        say(f"{several(found['ahead'], 'job')} of its lane start before it")
    if found["starts_ms"] is not None:
        say(f"it starts at about {moment(found['starts_ms'])}")


def _told(text: str) -> str:
    """Moments within a text as people read them."""
    return _MOMENT.sub(lambda at: moment(int(at[0])) or "", text)
