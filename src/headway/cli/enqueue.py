"""`headway enqueue`: one job from options, or many from a file of JSON lines."""

from pathlib import Path
from typing import Any, Final

import click

from headway.cli.asking import as_json, print_json
from headway.cli.given import content, date, duration, pair, said
from headway.cli.page import say
from headway.cli.refused import Refused, refusing
from headway.cli.remote import Remote, with_server
from headway.cli.rules import RETRIES, retry, window
from headway.cli.sections import example
from headway.core.durations import readable_ms

_OF_THE_JOB: Final = (
    click.option("--kind", help="The handler that runs it."),
    click.option("--tenant", help="Whose job it is."),
    click.option("--slo", type=duration, help="How long it may wait to start."),
    click.option("--delay", type=duration, help="Not before so long from now."),
    click.option("--run-at", type=date, help="Not before this time."),
    click.option("--priority", type=int, help="Lower goes first, in its tenant."),
    click.option("--weight", type=float, help="The tenant's share from now on."),
    click.option("--cost", type=int, help="Units of its limits that it takes."),
    click.option("--critical", is_flag=True, help="No limit stops or counts it."),
    click.option(
        "--label",
        "labels",
        type=pair,
        metavar="NAME=VALUE",
        multiple=True,
        help="For limits and search.",
    ),
    click.option(
        "--header",
        "headers",
        type=pair,
        metavar="NAME=VALUE",
        multiple=True,
        help="For the worker.",
    ),
    click.option(
        "--windows", type=window, multiple=True, help="Times of day it may start at."
    ),
    click.option("--key", "idempotency_key", help="The same key is the same job."),
    click.option("--attempts", type=int, help="Before it is a dead letter."),
    click.option("--timeout", type=duration, help="How long an attempt may take."),
    click.option("--lifetime", type=duration, help="When it expires."),
    click.option("--retry", type=retry, help=RETRIES),
    click.option("--result", type=duration, help="How long its result is kept."),
)


def of_the_job(command: Any) -> Any:
    """The options that say what a job is."""
    for option in reversed(_OF_THE_JOB):
        command = option(command)
    return command


@click.command(
    epilog=example(
        'headway enqueue mail --payload \'{"to": "ada"}\' --slo 5s --tenant acme',
        "headway enqueue mail --lines jobs.ndjson",
    )
)
@click.argument("queue")
@click.argument("source", required=False, type=click.Choice(["-"]), metavar="[-]")
@click.option("--payload", metavar="JSON", help="What the worker gets.")
@click.option("--file", type=click.Path(path_type=Path), help="Read it from there.")
@click.option("--bytes", "is_bytes", is_flag=True, help="It need not be JSON.")
@click.option(
    "--lines",
    type=click.Path(path_type=Path),
    help='A job a line, as the API has it: {"payload": ..., "tenant": ...}.',
)
@click.option("--quiet", "is_quiet", is_flag=True, help="No progress bar.")
@of_the_job
@with_server
@as_json
def enqueue(remote: Remote, queue: str, *, is_json: bool, **options: Any) -> None:
    """Enqueue a job in QUEUE, or many.

    It is on stable storage when this returns. A queue that is not there is made. `-`
    reads the payload from the standard input.

    With --lines many jobs are sent, 1,000 at a time. Where an answer stays out nobody
    knows whether the jobs were taken: they are sent again only if each of them has an
    idempotency_key, which makes that safe. --json then prints how many were sent.
    """
    source = options.pop("source")
    lines, is_quiet = options.pop("lines"), options.pop("is_quiet")
    with refusing():
        if lines is not None:
            if source or any(map(_is_given, options.values())):
                raise Refused("--lines says all about its jobs: no other option fits")
            from headway.cli.lines import send_lines

            send_lines(remote, queue, lines, is_quiet=is_quiet, is_json=is_json)
            return
        file = options.pop("file")
        if source and file is not None:
            raise Refused("a payload comes from --file or from -, not from both")
        body = job_of(options, Path("-") if source else file)
        found = remote.post("v1", "queues", queue, "jobs", body=body)
        if is_json:
            print_json(remote.text)
        else:
            _show(queue, found)


def job_of(options: dict[str, Any], file: Path | None) -> dict[str, Any]:
    """A job as the API has it, from what was typed."""
    payload, is_bytes = options.pop("payload"), options.pop("is_bytes")
    body = content(payload, file, is_bytes=is_bytes) | said(options.items())
    if not body["critical"]:
        del body["critical"]
    for name in ("labels", "headers"):
        if name in body:
            body[name] = dict(body[name])
    return body


def _is_given(value: object) -> bool:
    return value is not None and value is not False and value != ()


def _show(queue: str, found: dict[str, Any]) -> None:
    job = found["jobs"][0]
    wait_ms = job.get("expected_wait_ms")
    if found["duplicates"]:
        say(f"{job['id']} is in {queue} already: its key was known")
    elif found.get("shed"):
        say(f"{job['id']} was shed: {queue} is full, and it is among the dead letters")
    elif wait_ms is None:
        say(f"{job['id']} is in {queue}")
    else:
        say(f"{job['id']} is in {queue}, to start in about {readable_ms(wait_ms)}")
