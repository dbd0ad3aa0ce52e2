"""What a worker does, by hand: for a look at jobs as workers get them."""

from pathlib import Path
from typing import Any

import click

from headway.cli.asking import Shown, asks
from headway.cli.given import content, duration, said
from headway.cli.jobs import payload_of
from headway.cli.page import heading, moment, note, print_facts, say, several
from headway.cli.remote import Remote
from headway.cli.sections import example

_tokens = click.argument("tokens", nargs=-1, required=True, metavar="TOKEN...")


@click.command(epilog=example("headway lease payment mail --max 5 --wait 20s"))
@click.argument("queues", nargs=-1, metavar="[QUEUE...]")
@click.option(
    "--max", "most", type=int, default=1, show_default=True, help="Jobs at most."
)
@click.option("--wait", type=duration, default="0s", help="For a first job.")
@click.option("--lease", "lease_ms", type=duration, help="How long they are yours.")
@click.option("--worker", default="cli", show_default=True, help="Your name.")
@asks
def lease(remote: Remote, queues: tuple[str, ...], **options: Any) -> Shown:
    """Lease jobs of the QUEUEs, or of all: most urgent first.

    They are yours until their lease ends. Say what became of each with its token:
    ack, nack, release or wait.
    """
    body = {
        "max": options["most"],
        "wait": options["wait"],
        "worker": options["worker"],
    }
    body |= said([("queues", queues), ("lease", options["lease_ms"])])
    found = remote.post("v1", "lease", body=body)

    def show() -> None:
        for job in found["jobs"]:
            _show_leased(job)
        if not found["jobs"]:
            note("there is no job to start")

    return show


@click.command(epilog=example("headway extend TOKEN --lease 5m"))
@_tokens
@click.option("--lease", "lease_ms", type=duration, default="30s", show_default=True)
@asks
def extend(remote: Remote, tokens: tuple[str, ...], lease_ms: int) -> Shown:
    """Keep leased jobs for longer: so long from now."""
    body = {"tokens": tokens, "lease": lease_ms}
    return _settled(remote.post("v1", "extend", body=body), tokens, "extended")


@click.command(epilog=example("headway ack TOKEN", "headway ack TOKEN --result 17"))
@_tokens
@click.option("--result", metavar="JSON", help="What to tell those who asked for it.")
@asks
def ack(remote: Remote, tokens: tuple[str, ...], result: str | None) -> Shown:
    """Say that leased jobs are done."""
    body: dict[str, Any] = {"tokens": tokens}
    if result is not None:
        value = {"value": content(result, None, is_bytes=False)["payload"]}
        body["results"] = dict.fromkeys(tokens, value)
    found = remote.post("v1", "ack", body=body)
    return _settled(found, tokens, "done")


@click.command(epilog=example("headway nack TOKEN --error 'no route' --retry-in 10s"))
@click.argument("leased", metavar="TOKEN")
@click.option("--error", default="", help="What went wrong.")
@click.option("--retry-in", type=duration, help="Not as its retry strategy says.")
@click.option("--bury", is_flag=True, help="No further attempt: a dead letter.")
@asks
def nack(remote: Remote, leased: str, **options: Any) -> Shown:
    """Say that an attempt failed."""
    failure = {"token": leased, **said(options.items())}
    found = remote.post("v1", "nack", body={"jobs": [failure]})
    done = "buried" if options["bury"] else "failed, as its strategy says"
    if options["retry_in"] is not None and not options["bury"]:
        done = "failed, to be tried again"
    return _settled(found, (leased,), done)


@click.command(epilog=example("headway release TOKEN"))
@_tokens
@asks
def release(remote: Remote, tokens: tuple[str, ...]) -> Shown:
    """Give leased jobs back unused; nothing is counted."""
    found = remote.post("v1", "release", body={"tokens": tokens})
    return _settled(found, tokens, "given back")


@click.command(epilog=example("headway wait TOKEN order-17 --timeout 10m"))
@click.argument("leased", metavar="TOKEN")
@click.argument("key")
@click.option("--timeout", type=duration, default="10m", show_default=True)
@click.option("--done-on-reply", is_flag=True, help="The reply completes the job.")
@asks
def wait(remote: Remote, leased: str, key: str, **options: Any) -> Shown:
    """Let a leased job wait for the reply KEY, without a worker."""
    body = {"token": leased, "reply_key": key, **options}
    remote.post("v1", "wait", body=body)
    return lambda: say(f"it waits for the reply {key!r}")


@click.command(epilog=example("headway reply orders order-17 --payload '\"paid\"'"))
@click.argument("queue")
@click.argument("key")
@click.option("--payload", metavar="JSON", help="The answer.")
@click.option("--file", type=click.Path(path_type=Path), help="Read it from there.")
@click.option("--bytes", "is_bytes", is_flag=True, help="It need not be JSON.")
@asks
def reply(
    remote: Remote,
    queue: str,
    key: str,
    *,
    payload: str | None,
    file: Path | None,
    is_bytes: bool,
) -> Shown:
    """Give the job of QUEUE that waits for KEY its answer."""
    body = content(payload, file, is_bytes=is_bytes)
    found = remote.post("v1", "queues", queue, "replies", key, body=body)
    told = {
        "resolved": "its job goes on",
        "early": "nobody waits for it yet: it is kept",
        "repeated": "it was answered before: nothing changes",
        "late": "its job waits no more: nothing changes",
    }
    return lambda: say(told.get(found["fate"], found["fate"]))


def _settled(found: dict[str, Any], tokens: tuple[str, ...], done: str) -> Shown:
    def show() -> None:
        good = len(set(tokens)) - len(found["stale"])
        if good:
            say(f"{several(good, 'job')} {done}")
        for token in found["stale"]:
            say(f"{token} is not, or no longer, a lease: nothing changes")
        for token in found["cancelled"]:
            say(f"{token} is to be cancelled: give it up")

    return show


def _show_leased(job: dict[str, Any]) -> None:
    heading(f"{job['id']} of {job['queue']}")
    print_facts(
        [
            ("token", job["token"]),
            ("kind", job["kind"] or None),
            ("tenant", job["tenant"] or None),
            ("attempt", f"{job['attempt']} of {job['attempts_max']}"),
            ("yours until", moment(job["lease_until_ms"])),
            ("payload", payload_of(job)),
            ("reply", payload_of(job, "reply")),
        ]
    )
