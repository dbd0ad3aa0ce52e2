"""`headway jobs` and `headway autoscale`: jobs by what is known of them, and workers."""

from typing import Any

import click

from headway.cli.asking import Shown, asks, paged
from headway.cli.page import heading, moment, more, note, print_table, say
from headway.cli.remote import Remote
from headway.cli.sections import example
from headway.core.durations import readable_ms


@click.command(
    epilog=example("headway jobs --queue mail --state dead --label region=eu")
)
@click.option("--queue", help="Of one queue.")
@click.option("--state", metavar="STATE,…", help="ready, leased, dead, done, …")
@click.option("--tenant", help="Of one tenant; needs a queue.")
@click.option("--kind", help="Of one kind; needs a queue.")
@click.option("--label", metavar="NAME=VALUE", help="With this label.")
@click.option("--worker", help="Who has it, or had it last.")
@click.option("--reason", help="Of its last failure.")
@click.option("--error", help="How its last failure begins; needs a reason.")
@click.option("--by", type=click.Choice(["enqueued", "changed"]), help="Which time.")
@click.option("--since", metavar="TIME", help="From this moment on.")
@click.option("--until", metavar="TIME", help="Before this moment.")
@click.option("--order", type=click.Choice(["newest", "oldest"]), help="What first.")
@click.option("--cursor", help="The next page of a long list.")
@paged
@asks
def jobs(remote: Remote, **query: Any) -> Shown:
    """Search jobs, whether they are open or over."""
    found = remote.get("v1", "jobs", **query)

    def show() -> None:
        print_table(
            ("id", "queue", "kind", "tenant", "state", "attempt#", "since", "failure"),
            [
                (
                    one["id"],
                    one["queue"],
                    one["kind"] or None,
                    one["tenant"] or None,
                    one["state"],
                    one["attempt"],
                    moment(one["ended_ms"] or one["run_at_ms"]),
                    _failure(one),
                )
                for one in found["jobs"]
            ],
            empty="no job fits",
        )
        more(found["next"], "--cursor")
        note(f"as of event {found['indexed_to']}, {moment(found['indexed_ms'])}")

    return show


@click.command(epilog=example("headway timeline p1_17"))
@click.argument("id_", metavar="ID")
@click.option("--after", type=click.IntRange(0), help="Events after this one.")
@paged
@asks
def timeline(remote: Remote, id_: str, **query: Any) -> Shown:
    """Tell everything that happened to a job."""
    found = remote.get("v1", "jobs", id_, "timeline", **query)

    def show() -> None:
        print_table(
            ("event#", "when", "what", "details"),
            [
                (one["number"], moment(one["at_ms"]), one["event"], _told(one))
                for one in found["events"]
            ],
            empty="nothing is known of it",
        )
        more(None if found["next"] is None else str(found["next"]))

    return show


@click.command(epilog=example("headway autoscale --queues mail,default"))
@click.option("--queues", metavar="NAME,…", help="Left out: all queues.")
@click.option(
    "--concurrency", type=click.IntRange(1), help="Jobs that one worker runs at once."
)
@click.option("--start", metavar="DURATION", help="Until a new worker is there.")
@asks
def autoscale(remote: Remote, **query: Any) -> Shown:
    """Say how many workers would keep the promises, and why."""
    found = remote.get("v1", "autoscale", **query)

    def show() -> None:
        heading(f"{found['workers']} workers ({found['slots']} jobs at once)")
        say(found["reason"])
        print_table(
            ("queue", "may wait", "busy slots#", "slots for what waits#"),
            [
                (
                    lane["queue"],
                    readable_ms(lane["slo_ms"]),
                    round(lane["load"], 2),
                    round(lane["backlog"], 2),
                )
                for lane in found["lanes"]
            ],
            empty="there is no queue",
        )

    return show


def _failure(one: dict[str, Any]) -> str | None:
    if not one["errors"]:
        return None
    last = one["errors"][-1]
    line = last["text"].partition("\n")[0]
    return f"{last['reason']}: {line}" if line else str(last["reason"])


def _told(one: dict[str, Any]) -> str:
    details = one["details"].items()
    return ", ".join(f"{name} {value}" for name, value in details if value)
