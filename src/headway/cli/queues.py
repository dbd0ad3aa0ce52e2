"""`headway queues` and `headway queue`: what waits where, and by which rules."""

from pathlib import Path
from typing import Any, Final

import click
import msgspec

from headway.cli.asking import Shown, asks, paged
from headway.cli.given import duration, said
from headway.cli.page import (
    heading,
    moment,
    more,
    note,
    print_facts,
    print_table,
    say,
)
from headway.cli.refused import Refused
from headway.cli.remote import Problem, Remote
from headway.cli.rules import (
    LIMITS,
    RETRIES,
    WINDOWS,
    limit,
    retry,
    window,
    written_limit,
    written_retry,
)
from headway.cli.sections import example
from headway.core.durations import readable_ms

COUNTS: Final = ("ready", "scheduled", "leased", "waiting", "dead")
RULES_MAX: Final = 1 << 20


@click.command(epilog=example("headway queues"))
@click.option("--after", metavar="NAME", help="The next page of a long list.")
@paged
@asks
def queues(remote: Remote, **query: Any) -> Shown:
    """List queues with their counts."""
    found = remote.get("v1", "queues", **query)

    def show() -> None:
        print_table(
            ("queue", *(f"{name}#" for name in COUNTS), "held"),
            [
                (
                    one["name"],
                    *(one["counts"][name] for name in COUNTS),
                    held(one) or None,
                )
                for one in found["queues"]
            ],
            empty="there is no queue",
        )
        more(found["next"])

    return show


@click.group()
def queue() -> None:
    """Look at a queue, or set its rules."""


@queue.command(epilog=example("headway queue show mail"))
@click.argument("name")
@asks
def show(remote: Remote, name: str) -> Shown:
    """Show a queue: its counts, lanes, limits in use and rules."""
    found = remote.get("v1", "queues", name)
    return lambda: print_queue(found)


@queue.command(
    "set",
    epilog=example(
        "headway queue set mail --slo 5s --limit concurrency:smtp:20 "
        "--limit rate:api:100/1s:tenant",
        "headway queue set mail --windows 22:00-06:00@Europe/London --default retry",
    ),
)
@click.argument("name")
@click.option("--slo", type=duration, help="How long jobs may wait to start.")
@click.option("--slos", type=duration, multiple=True, help="Other promises to keep.")
@click.option("--max-length", type=int, help="There is no room for jobs beyond it.")
@click.option(
    "--when-full",
    type=click.Choice(["refuse", "wait", "shed"]),
    help="What becomes of those: refused at once, or after a few seconds without room, "
    "or accepted as dead letters.",
)
@click.option(
    "--throttler-fails",
    type=click.Choice(["closed", "open"]),
    help="Whether jobs wait or start while its throttler gives no verdict.",
)
@click.option("--limit", "limits", type=limit, multiple=True, help=LIMITS)
@click.option("--retry", type=retry, help=RETRIES)
@click.option("--windows", type=window, multiple=True, help=WINDOWS)
@click.option("--attempts", type=int, help="Before a job is a dead letter.")
@click.option("--lease", type=duration, help="How long a worker has a job.")
@click.option("--timeout", type=duration, help="How long an attempt may take.")
@click.option("--lifetime", type=duration, help="When jobs expire.")
@click.option(
    "--order",
    type=click.Choice(["fair", "time", "priority"]),
    help="Of the jobs that wait.",
)
@click.option(
    "--fair-by", type=click.Choice(["cost", "time"]), help="What shares are counted in."
)
@click.option("--weight", type=float, help="Among queues of one promise.")
@click.option("--priority", type=int, help="Of jobs that name none.")
@click.option("--cost", type=int, help="Of jobs that name none.")
@click.option("--margin", type=duration, help="Start so long before a promise ends.")
@click.option("--floor", type=float, help="Share of starts in an overload.")
@click.option("--slot-share", type=float, help="Share of workers it may have.")
@click.option("--idempotency-window", type=duration, help="How long keys are known.")
@click.option("--early-reply", type=duration, help="How long replies are kept.")
@click.option("--early-replies", type=int, help="How many of them.")
@click.option(
    "--default", "defaults", multiple=True, metavar="RULE", help="Back to its default."
)
@click.option("--file", type=click.Path(path_type=Path), help="Rules as JSON.")
@click.option(
    "--replace", "is_whole", is_flag=True, help="All other rules get their defaults."
)
@asks
def set_(remote: Remote, name: str, **options: Any) -> Shown:
    """Change rules of the queue NAME; it is made if it is not there.

    Limits and windows that are given stand in place of all that were there. Jobs that
    wait follow the new rules at once.
    """
    is_whole, file = options.pop("is_whole"), options.pop("file")
    rules: dict[str, Any] = {} if file is None else _rules(file)
    rules |= dict.fromkeys(map(_known, options.pop("defaults")))
    rules |= said(options.items())
    if not rules and not is_whole:
        raise Refused("there is nothing to set; see headway queue set --help")
    found = _set(remote, name, rules, is_whole=is_whole)

    def show() -> None:
        print_queue(found)

    return show


@queue.command(epilog=example("headway queue widen mail 1"))
@click.argument("name")
@click.argument("count")
@click.option(
    "--max", "most", type=click.IntRange(1), help="With auto: at most so many."
)
@asks
def widen(remote: Remote, name: str, count: str, most: int | None) -> Shown:
    """Give the queue NAME as many partitions as COUNT says, in a cluster.

    Several nodes serve it at once then. Its limits and its length are divided between
    them. With fewer than it has, some take no new jobs from now on, and leave it when
    they hold none. With `auto` nodes find the number by themselves, by how busy its
    partitions are.
    """
    body: dict[str, Any] = {"count": _width(count)}
    if most is not None:
        body["max"] = most
    found = remote.put("v1", "queues", name, "partitions", body=body)

    def show() -> None:
        say(f"{name} is in {', '.join(found['partitions'])}")
        if found["leaving"]:
            say(f"{', '.join(found['leaving'])} will leave it, once they have no jobs")

    return show


def _width(text: str) -> int | str:
    if text == "auto":
        return text
    if not (text.isascii() and text.isdecimal() and int(text[:9])):
        raise Refused(f"COUNT must be a number above 0, or auto, not {text!r}")
    return int(text)


def _set(remote: Remote, name: str, rules: dict[str, Any], *, is_whole: bool) -> Any:
    if not is_whole:
        try:
            return remote.patch("v1", "queues", name, body=rules)
        except Problem as problem:
            if problem.code != "unknown_queue":
                raise
    whole = {rule: value for rule, value in rules.items() if value is not None}
    return remote.put("v1", "queues", name, body=whole)


def _rules(path: Path) -> dict[str, Any]:
    if path.stat().st_size > RULES_MAX:
        raise Refused(f"{path} is too large for rules")
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"{path} has no rules in JSON: {error}") from error


def _known(rule: str) -> str:
    from headway.wire.queues import QueueRules

    name = rule.replace("-", "_")
    if name not in QueueRules.__struct_fields__:
        known = ", ".join(QueueRules.__struct_fields__)
        raise Refused(f"there is no rule {rule!r}; there are {known}")
    return name


def held(one: dict[str, Any]) -> str:
    """Who holds a queue, if anybody does."""
    names = ("paused", "blocked")
    return " and ".join(name for name in names if one[f"is_{name}"])


def print_queue(found: dict[str, Any]) -> None:
    """A queue with all its tables."""
    heading(found["name"] + (f": {held(found)}" if held(found) else ""))
    say(", ".join(f"{found['counts'][name]:,} {name}" for name in COUNTS))
    if found.get("has_throttler"):
        say("a throttler is asked before its jobs start")
    if found["lanes"]:
        print_table(
            ("lane", "ready#", "due", "next to start by", "starts#"),
            [
                (
                    readable_ms(lane["slo_ms"]) + (" critical" * lane["critical"]),
                    lane["ready"],
                    lane["is_due"],
                    moment(lane["next_aim_ms"]),
                    _pace(lane["start_interval_ms"]),
                )
                for lane in found["lanes"]
            ],
        )
    if found["limits"]:
        print_table(
            ("limit", "of", "used#", "max#"),
            [
                (one["name"], one["value"] or None, one["used"], one["max"])
                for one in found["limits"]
            ],
        )
    note("rules")
    print_facts([(name, _rule(name, value)) for name, value in found["rules"].items()])


def _pace(interval_ms: float) -> str | None:
    return f"{1_000 / interval_ms:,.1f}/s" if interval_ms else None


def _rule(name: str, value: Any) -> str | None:
    """A rule as `queue set` would take it."""
    match name, value:
        case _, None | []:
            return None
        case "retry", dict():
            return written_retry(value)
        case "limits", list():
            return ", ".join(map(written_limit, value))
        case "windows", list():
            return ", ".join(f"{one['span']}@{one['zone']}" for one in value)
        case _, list():
            return ", ".join(map(str, value))
        case _:
            return str(value)
