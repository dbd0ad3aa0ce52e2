"""`headway bridge`: carries answers of outside systems to the jobs that wait for them."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from headway.cli.given import duration, pair
from headway.cli.refused import Refused, refusing
from headway.cli.remote import server_given
from headway.cli.sections import example

if TYPE_CHECKING:
    from headway.bridge.carrying import Crossing
    from headway.bridge.log import Log
    from headway.bridge.port import Aside, Source

R = TypeVar("R")
SETTINGS_BYTES_MAX: Final = 1 << 20


@click.group()
def bridge() -> None:
    """Give replies from messages of another system.

    Each message names its job by a key: `headway.wait_for(KEY)` is answered by the first
    message with the same KEY. docs/replies.md has the expressions, and what is promised.
    """


def _crossing(command: Callable[..., R]) -> Callable[..., R]:
    """The options that all bridges have."""
    for option in reversed(
        (
            click.option(
                "--queue", required=True, help="Of the jobs that wait for replies."
            ),
            click.option(
                "--key",
                required=True,
                metavar="EXPR",
                help="Where the key is: value.order.id, or order-{value.order.id}.",
            ),
            click.option(
                "--value",
                default="value",
                show_default=True,
                metavar="EXPR",
                help="What the job gets as its reply.",
            ),
            click.option(
                "--on-bad",
                type=click.Choice(["skip", "stop"]),
                default="skip",
                show_default=True,
                help="After a message that has no key, or that the server refuses.",
            ),
            click.option(
                "--concurrency",
                type=click.IntRange(1, 1_000),
                default=64,
                show_default=True,
                help="Replies that are given at once.",
            ),
            click.option(
                "--commit-every",
                type=duration,
                default="1s",
                show_default=True,
                help="How often offsets are committed.",
            ),
            click.option(
                "--report-every",
                type=duration,
                default="30s",
                show_default=True,
                help="How often the log tells the counts.",
            ),
            click.option(
                "--grace",
                type=duration,
                default="20s",
                show_default=True,
                help="How long replies in flight may take after SIGTERM.",
            ),
        )
    ):
        command = option(command)
    return server_given(command)


@bridge.command(
    epilog=example(
        "headway bridge kafka --brokers k1:9092,k2:9092 --topic answers \\\n"
        "      --group headway --queue orders --key 'order-{value.order.id}' \\\n"
        "      --dead-topic answers-dead --settings kafka.properties"
    )
)
@click.option("--brokers", required=True, help="HOST:PORT, with commas between.")
@click.option(
    "--topic",
    "topics",
    required=True,
    multiple=True,
    help="May be given several times.",
)
@click.option("--group", required=True, help="Bridges of one group share the work.")
@click.option(
    "--dead-topic",
    metavar="TOPIC",
    help="Gets the bad messages, with the reason in a header; --on-bad is not asked.",
)
@click.option(
    "--set",
    "pairs",
    type=pair,
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of librdkafka, such as security.protocol=SSL.",
)
@click.option(
    "--settings",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file with a NAME=VALUE a line: the place for passwords.",
)
@_crossing
def kafka(
    *,
    brokers: str,
    topics: tuple[str, ...],
    group: str,
    dead_topic: str | None,
    pairs: tuple[tuple[str, str], ...],
    file: Path | None,
    **options: Any,
) -> None:
    """Give replies from the messages of Kafka topics.

    EXPR is a path into the message (value.order.id, value.items[0].sku, key,
    header.correlation-id), or text with paths in braces (order-{value.order.id}).

    Offsets are committed when the server has the reply on stable storage. While it is
    away messages wait and nothing is committed. SIGTERM: replies in flight are finished
    and committed; a second one ends it at once. Needs `pip install 'headway[kafka]'`.
    """
    from headway.bridge.kafka import KafkaAside, KafkaSource, checked
    from headway.bridge.log import Log
    from headway.bridge.port import SourceFailed

    log = Log()
    with refusing():
        crossing = _read(options)
        own = checked({**(_settings(file) if file else {}), **dict(pairs)})
        settings = {**own, "bootstrap.servers": brokers}
        try:
            source = KafkaSource(topics, group, settings, log)
            aside = KafkaAside(dead_topic, settings, log) if dead_topic else None
        except SourceFailed as error:
            raise Refused(str(error)) from error
        log.happened("started", topics=list(topics), group=group, queue=crossing.queue)
        _run(crossing, source, log, aside, options)


@bridge.command(
    epilog=example(
        "headway bridge lines answers.ndjson --queue orders --key value.order"
    )
)
@click.argument("file", type=click.Path(path_type=Path), default=Path("-"))
@_crossing
def lines(*, file: Path, **options: Any) -> None:
    """Give replies from JSON lines: of FILE, or of standard input.

    EXPR is a path into the line (value.order.id, value.items[0].sku), or text with paths
    in braces (order-{value.order.id}).

    It ends with its input. Given the same lines again, it changes nothing.
    """
    from headway.bridge.lines import Lines
    from headway.bridge.log import Log

    log = Log()
    with refusing(), _opened(file) as descriptor:
        crossing = _read(options)
        log.happened("started", file=str(file), queue=crossing.queue)
        _run(crossing, Lines(descriptor, str(file)), log, None, options)


def _read(options: dict[str, Any]) -> "Crossing":
    from headway.bridge.carrying import ROOTS, Crossing
    from headway.wire.expressions import parse

    return Crossing(
        queue=options["queue"],
        key=parse(options["key"], "key", ROOTS),
        value=parse(options["value"], "value", ROOTS),
        is_stopped_by_bad=options["on_bad"] == "stop",
        concurrency=options["concurrency"],
        commit_s=options["commit_every"] / 1_000,
        report_s=max(1, options["report_every"]) / 1_000,
        grace_s=options["grace"] / 1_000,
    )


def _run(
    crossing: "Crossing",
    source: "Source",
    log: "Log",
    aside: "Aside | None",
    options: dict[str, Any],
) -> None:
    import uvloop

    from headway.bridge.carrying import Bridge, Stopped
    from headway.bridge.port import SourceFailed
    from headway.client.awaited import AsyncClient

    async def run() -> None:
        client = AsyncClient(options["server"], options["token"] or None, tries=1)
        made = Bridge(crossing, source, client, log, aside)
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, made.stop)
        try:
            await made.run()
        finally:
            await client.close()

    try:
        uvloop.run(run())
    except (Stopped, SourceFailed) as error:
        raise Refused(str(error)) from error


def _settings(file: Path) -> dict[str, str]:
    """Lines of NAME=VALUE; empty ones and those that begin with # say nothing."""
    with file.open("rb") as opened:
        content = opened.read(SETTINGS_BYTES_MAX + 1)
    if len(content) > SETTINGS_BYTES_MAX:
        raise Refused(f"{file}: it is too large")
    try:
        texts = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise Refused(f"{file}: it is no UTF-8") from error
    found: dict[str, str] = {}
    for number, line in enumerate(texts, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.partition("=")
        if not name.strip() or not equals:
            # Not quoted: it may be a password.
            raise Refused(f"{file}: line {number} is no NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


@contextmanager
def _opened(file: Path) -> Iterator[int]:
    if str(file) == "-":
        yield sys.stdin.fileno()
        return
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
