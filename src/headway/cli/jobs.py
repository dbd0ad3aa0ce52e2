"""`headway job` and `headway running`: single jobs, as they stand."""

import json
from typing import Any

import click

from headway.cli.asking import Shown, asks, paged
from headway.cli.page import (
    heading,
    moment,
    more,
    print_facts,
    print_table,
    say,
)
from headway.cli.remote import Remote
from headway.cli.sections import example
from headway.core.durations import readable_ms


@click.group()
def job() -> None:
    """Look at a job, cancel it, or bring it back."""


@job.command(epilog=example("headway job show p1_17"))
@click.argument("id_", metavar="ID")
@asks
def show(remote: Remote, id_: str) -> Shown:
    """Show a job as it stands, with its payload and every error."""
    found = remote.get("v1", "jobs", id_)
    return lambda: print_job(found)


@job.command(epilog=example("headway job result p1_17 --wait 30s"))
@click.argument("id_", metavar="ID")
@click.option("--wait", metavar="TIME", help="Wait for it so long, at most a minute.")
@asks
def result(remote: Remote, id_: str, wait: str | None) -> Shown:
    """Show what a job returned that was asked for its result."""
    found = remote.get("v1", "jobs", id_, "result", wait=wait)
    return lambda: print_result(found)


@job.command(epilog=example("headway job cancel p1_17"))
@click.argument("id_", metavar="ID")
@asks
def cancel(remote: Remote, id_: str) -> Shown:
    """Cancel a job; if it runs, its worker is told."""
    found = remote.delete("v1", "jobs", id_)
    told = {"requested": "it runs: its worker is told at its next word"}
    return lambda: say(f"{id_}: {told.get(found['outcome'], found['outcome'])}")


@job.command(epilog=example("headway job redrive p1_17"))
@click.argument("id_", metavar="ID")
@asks
def redrive(remote: Remote, id_: str) -> Shown:
    """Put a dead letter back, with fresh attempts."""
    remote.post("v1", "jobs", id_, "redrive")
    return lambda: say(f"{id_} is back in its queue")


@click.command(epilog=example("headway running --queue mail"))
@click.option("--queue", help="Of one queue only.")
@click.option("--after", metavar="ID", help="The next page of a long list.")
@paged
@asks
def running(remote: Remote, **query: Any) -> Shown:
    """List jobs that run or wait for a reply, oldest first."""
    found = remote.get("v1", "running", **query)

    def show() -> None:
        print_table(
            ("id", "queue", "kind", "tenant", "state", "attempt#", "with", "until"),
            [
                (
                    one["id"],
                    one["queue"],
                    one["kind"] or None,
                    one["tenant"] or None,
                    one["state"],
                    one["attempt"],
                    _holder(one),
                    moment(one["lease_until_ms"] or one["wait_until_ms"]),
                )
                for one in found["jobs"]
            ],
            empty="nothing runs",
        )
        more(found["next"])

    return show


def print_job(found: dict[str, Any]) -> None:
    """All that is known of a job."""
    heading(f"{found['id']} of {found['queue']}: {found['state']}")
    flag = "yes, its worker is told" if found["is_cancel_requested"] else None
    print_facts(
        [
            ("kind", found["kind"] or None),
            ("tenant", found["tenant"] or None),
            ("may wait", readable_ms(found["slo_ms"])),
            ("enqueued", moment(found["enqueued_ms"])),
            ("ready", moment(found["run_at_ms"])),
            ("started", moment(found["started_ms"])),
            ("ended", moment(found["ended_ms"])),
            ("expires", moment(found["expires_ms"])),
            ("attempt", _attempt(found)),
            ("worker", found["worker"] or None),
            ("lease ends", moment(found["lease_until_ms"])),
            ("waits for", found["reply_key"]),
            ("waits until", moment(found["wait_until_ms"])),
            ("cancelled", flag),
            ("critical", "yes" if found["critical"] else None),
            ("priority", found["priority"]),
            ("cost", found["cost"]),
            ("labels", pairs(found["labels"])),
            ("headers", pairs(found["headers"])),
            ("payload", payload_of(found)),
        ]
    )
    print_errors(found["errors"])


def print_result(found: dict[str, Any]) -> None:
    """What became of a job."""
    heading(f"{found['id']}: {found['state']}")
    print_facts(
        [
            ("result", payload_of(found, "value")),
            ("not kept", found["problem"]),
            ("ended", moment(found["ended_ms"])),
            ("kept until", moment(found["kept_until_ms"])),
        ]
    )
    print_errors(found["errors"])


def print_errors(errors: list[dict[str, Any]]) -> None:
    if errors:
        print_table(
            ("error", "attempt#", "reason", "text"),
            [
                (moment(one["at_ms"]), one["attempt"], one["reason"], one["text"])
                for one in errors
            ],
        )


def payload_of(found: dict[str, Any], name: str = "payload") -> str | None:
    """JSON in one line, or bytes as base64."""
    if name in found:
        return json.dumps(found[name], ensure_ascii=False)
    text = found.get(f"{name}_base64")
    return None if text is None else f"{text} (base64)"


def pairs(found: dict[str, str] | None) -> str | None:
    return (
        ", ".join(f"{key}={value}" for key, value in found.items()) if found else None
    )


def _holder(found: dict[str, Any]) -> str:
    """Who has a job that runs, or what it waits for."""
    if found["state"] == "waiting":
        return f"reply {found['reply_key']}"
    worker: str = found["worker"]
    return worker


def _attempt(found: dict[str, Any]) -> str | None:
    most = found["attempts_max"]
    if not found["attempt"]:
        return f"none yet of {most}" if most else None
    return f"{found['attempt']} of {most}" if most else str(found["attempt"])
