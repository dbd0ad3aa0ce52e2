"""Operations on many jobs: asked about first, and watched until they end."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from headway.cli.asking import print_json
from headway.cli.given import said
from headway.cli.page import moment, note, print_table, say, several
from headway.cli.refused import Refused
from headway.cli.remote import Remote

POLL_S: Final = 0.1
POLL_MAX_S: Final = 1.0
DONE: Final = {"purge": "cancelled", "redrive": "put back", "discard": "thrown away"}

_OPTIONS: Final = (
    click.option("--rate", type=float, help="Jobs a second at most."),
    click.option("--preview", is_flag=True, help="Change nothing: show what is meant."),
    click.option("--yes", "is_sure", is_flag=True, help="Do not ask."),
    click.option("--detach", "is_left", is_flag=True, help="Do not wait for its end."),
)


def of_operations(command: Any) -> Any:
    """The options of commands that start an operation."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def operate(
    remote: Remote,
    path: tuple[str, ...],
    body: dict[str, Any],
    *,
    question: str | None,
    options: dict[str, Any],
) -> None:
    """Previews, or asks and starts; then follows the operation to its end."""
    is_json = options["is_json"]
    body = body | said([("rate", options["rate"])])
    if options["preview"]:
        found = remote.post("v1", "queues", *path, body={**body, "preview": True})
        if is_json:
            print_json(remote.text)
        else:
            _show_preview(found)
        return
    if question is not None and not options["is_sure"]:
        _ask(remote, path, body, question)
    with _told_if_left() as left:
        operation = remote.post("v1", "queues", *path, body=body)
        left.append(operation["id"])
        if not options["is_left"]:
            operation = _followed(remote, operation, is_quiet=is_json)
    if is_json:
        print_json(remote.text)
    else:
        _show_end(operation)


def _ask(
    remote: Remote, path: tuple[str, ...], body: dict[str, Any], question: str
) -> None:
    found = remote.post("v1", "queues", *path, body={**body, "preview": True})
    least = "at least " if found["is_more"] else ""
    count = f"{least}{several(found['matched'], 'job')}"
    try:
        is_wanted = click.confirm(f"{question} ({count})", default=False, err=True)
    except click.Abort as abort:
        raise Refused(
            "nobody answered: nothing was done; --yes does not ask"
        ) from abort
    if not is_wanted:
        raise Refused("nothing was done")


def _followed(remote: Remote, operation: dict[str, Any], *, is_quiet: bool) -> Any:
    from headway.cli.watching import watching

    pause_s = POLL_S
    with watching(is_quiet=is_quiet) as advance:
        while operation["state"] == "running":
            done = operation["done"] + operation["failed"]
            total = max(operation["total"] or 0, done, 1)
            advance(f"{operation['verb']} {operation['queue']}", done, total)
            time.sleep(pause_s)
            pause_s = min(POLL_MAX_S, pause_s * 1.5)
            operation = remote.get("v1", "operations", str(operation["id"]))
    return operation


@contextmanager
def _told_if_left() -> Iterator[list[int]]:
    """An interrupt ends the watching, not the operation, whose number is told."""
    started: list[int] = []
    try:
        yield started
    except KeyboardInterrupt:
        if not started:
            told = (
                "it may have begun, and go on without you; see headway operation list"
            )
            raise Refused(told) from None
        raise Refused(
            f"operation {started[0]} goes on without you; "
            f"headway operation show {started[0]} looks at it, stop ends it"
        ) from None


def _show_end(operation: dict[str, Any]) -> None:
    if operation["state"] == "running":
        say(f"operation {operation['id']} runs")
        return
    done = DONE.get(operation["verb"], "done")
    told = f"{several(operation['done'], 'job')} {done}"
    if operation["failed"]:
        told += f", {operation['failed']:,} had moved on"
    if operation["state"] != "finished":
        told += f"; it was {operation['state']}"
    say(told)


def _show_preview(found: dict[str, Any]) -> None:
    least = "at least " if found["is_more"] else ""
    say(f"{least}{several(found['matched'], 'job')} would be met; nothing was done")
    print_sample(found["sample"])
    if found["matched"] > len(found["sample"]) > 0:
        note(f"the first {len(found['sample'])} of them")


def print_sample(jobs: list[dict[str, Any]]) -> None:
    """Some jobs, with their last errors if they have any."""
    if jobs:
        print_table(
            ("id", "state", "kind", "tenant", "since", "last error"),
            [
                (
                    one["id"],
                    one["state"],
                    one["kind"] or None,
                    one["tenant"] or None,
                    moment(_since_ms(one)),
                    last_error(one),
                )
                for one in jobs
            ],
        )


def last_error(one: dict[str, Any]) -> str | None:
    """Its reason and text, cut to what a row has room for."""
    if not one["errors"]:
        return None
    error = one["errors"][-1]
    told = ": ".join(filter(None, [error["reason"], error["text"]]))
    return told if len(told) <= 120 else told[:119] + "…"


def _since_ms(one: dict[str, Any]) -> int:
    at_ms: int = one["errors"][-1]["at_ms"] if one["errors"] else one["enqueued_ms"]
    return at_ms
