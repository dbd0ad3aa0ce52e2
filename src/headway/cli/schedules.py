"""`headway schedule`: jobs at the ticks of a cron expression."""

from pathlib import Path
from typing import Any

import click

from headway.cli.asking import Shown, asks, paged
from headway.cli.enqueue import job_of, of_the_job
from headway.cli.page import moment, more, print_table, say
from headway.cli.remote import Remote
from headway.cli.sections import example


@click.group()
def schedule() -> None:
    """Jobs that are enqueued by the clock."""


@schedule.command("list", epilog=example("headway schedule list"))
@click.argument("queue", required=False)
@click.option("--after", metavar="QUEUE/NAME", help="The next page of a long list.")
@paged
@asks
def list_(remote: Remote, queue: str | None, **query: Any) -> Shown:
    """List the schedules of QUEUE, or of all queues."""
    place = ("schedules",) if queue is None else ("queues", queue, "schedules")
    found = remote.get("v1", *place, **query)

    def show() -> None:
        print_table(
            ("queue", "name", "cron", "zone", "kind", "missed", "last", "next"),
            [
                (
                    one["queue"],
                    one["name"],
                    one["cron"],
                    one["zone"],
                    one["kind"] or None,
                    one["missed"],
                    moment(one["last_ms"]),
                    "paused" if one["is_paused"] else moment(one["next_ms"]),
                )
                for one in found["schedules"]
            ],
            empty="there is no schedule",
        )
        more(found["next"])

    return show


@schedule.command(
    epilog=example(
        "headway schedule put reports nightly '30 1 * * *' --zone Europe/London "
        "--kind report"
    )
)
@click.argument("queue")
@click.argument("name")
@click.argument("cron")
@click.option("--zone", default="UTC", show_default=True, help="Of the cron fields.")
@click.option(
    "--missed",
    type=click.Choice(["skip", "one", "all"]),
    default="one",
    show_default=True,
    help="What to do about ticks that nobody saw.",
)
@click.option("--paused", is_flag=True, help="It begins when it is resumed.")
@click.option("--payload", metavar="JSON", help="What the worker gets.")
@click.option("--file", type=click.Path(path_type=Path), help="Read it from there.")
@click.option("--bytes", "is_bytes", is_flag=True, help="It need not be JSON.")
@of_the_job
@asks
def put(remote: Remote, queue: str, name: str, **options: Any) -> Shown:
    """Make or change the schedule NAME of QUEUE: a job at every tick of CRON.

    CRON has five fields, or six with seconds in front.
    """
    names = ("cron", "zone", "missed", "paused")
    body = {key: options.pop(key) for key in names}
    body["job"] = job_of(options, options.pop("file"))
    found = remote.put("v1", "queues", queue, "schedules", name, body=body)

    def show() -> None:
        following = "paused" if found["is_paused"] else moment(found["next_ms"])
        say(f"{queue}/{name}: {found['cron']} ({found['zone']}), next {following}")

    return show


@schedule.command(epilog=example("headway schedule drop reports nightly"))
@click.argument("queue")
@click.argument("name")
@asks
def drop(remote: Remote, queue: str, name: str) -> Shown:
    """Remove a schedule; jobs that it has enqueued stay."""
    remote.delete("v1", "queues", queue, "schedules", name)
    return lambda: say(f"{queue}/{name} is gone")


@schedule.command(epilog=example("headway schedule pause reports nightly"))
@click.argument("queue")
@click.argument("name")
@asks
def pause(remote: Remote, queue: str, name: str) -> Shown:
    """Let no tick enqueue anything, until it is resumed."""
    remote.post("v1", "queues", queue, "schedules", name, "pause")
    return lambda: say(f"{queue}/{name} is paused")


@schedule.command(epilog=example("headway schedule resume reports nightly"))
@click.argument("queue")
@click.argument("name")
@asks
def resume(remote: Remote, queue: str, name: str) -> Shown:
    """Go on; missed ticks follow the schedule's policy."""
    found = remote.post("v1", "queues", queue, "schedules", name, "resume")
    return lambda: say(f"{queue}/{name}: next {moment(found['next_ms'])}")


@schedule.command(epilog=example("headway schedule run reports nightly"))
@click.argument("queue")
@click.argument("name")
@asks
def run(remote: Remote, queue: str, name: str) -> Shown:
    """Enqueue the job at once, beside its ticks."""
    found = remote.post("v1", "queues", queue, "schedules", name, "run")
    return lambda: say(f"{queue}/{name}: enqueued {found['jobs'][0]['id']}")
