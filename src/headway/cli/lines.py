"""Many jobs from JSON lines: sent in batches, again only where that is safe."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import click
import msgspec

from headway.cli.page import several
from headway.cli.refused import Refused
from headway.cli.remote import NoAnswer, Problem, Remote

BATCH_JOBS: Final = 1_000
BATCH_BYTES: Final = 8 << 20
LINE_BYTES: Final = 2 << 20
TRIES: Final = 5
FIRST_PAUSE_S: Final = 0.25
NOTHING_DONE: Final = {"busy", "too_many_requests"}
"""Problems after which the same may be asked again."""
UNKNOWN: Final = {"stopped", "internal"}


class Batch(NamedTuple):
    """Some lines that follow each other."""

    first: int
    """The number of its first line."""
    last: int
    jobs: list[msgspec.Raw]
    is_repeatable: bool
    """Every job has a key by which it is known when it comes again."""
    end: int
    """Bytes of the file up to its end."""


class _Keyed(msgspec.Struct):
    idempotency_key: str | None = None


def send_lines(
    remote: Remote, queue: str, path: Path, *, is_quiet: bool, is_json: bool
) -> None:
    """Sends all jobs of a file, and says how many there were."""
    from headway.cli.watching import watching

    sent = duplicates = shed = 0
    with _opened(path) as file, watching(is_quiet=is_quiet or is_json) as advance:
        size = path.stat().st_size if path.is_file() else 0
        for batch in batches(file):
            try:
                found = _sent(remote, queue, batch)
            except Refused as error:
                raise _stopped(batch, sent, error) from error
            sent += len(batch.jobs)
            duplicates += found["duplicates"]
            shed += len(found.get("shed", ()))
            advance("sent", batch.end, max(size, batch.end))
    if is_json:
        told = {"jobs": sent, "duplicates": duplicates, "shed": shed}
        click.echo(json.dumps(told))
    else:
        known = f", {duplicates:,} of them known already" if duplicates else ""
        over = f", {shed:,} of them shed: the queue was full" if shed else ""
        click.echo(f"{several(sent, 'job')} sent to {queue}{known}{over}")


def batches(file: IO[bytes]) -> Iterator[Batch]:
    """Reads no more than a batch ahead; empty lines are passed over."""
    jobs: list[msgspec.Raw] = []
    first = number = size = end = 0
    is_repeatable = True
    while line := file.readline(LINE_BYTES + 1):
        number += 1
        if len(line) > LINE_BYTES:
            raise Refused(f"line {number} is longer than 2 MiB")
        end += len(line)
        text = line.strip()
        if not text:
            continue
        is_keyed = _is_keyed(text, number)
        if jobs and size + len(text) > BATCH_BYTES:
            yield Batch(first, number - 1, jobs, is_repeatable, end)
            jobs, size, is_repeatable = [], 0, True
        first = first if jobs else number
        jobs.append(msgspec.Raw(text))
        size += len(text)
        is_repeatable &= is_keyed
        if len(jobs) == BATCH_JOBS:
            yield Batch(first, number, jobs, is_repeatable, end)
            jobs, size, is_repeatable = [], 0, True
    if jobs:
        yield Batch(first, number, jobs, is_repeatable, end)


def _is_keyed(text: bytes, number: int) -> bool:
    try:
        return msgspec.json.decode(text, type=_Keyed).idempotency_key is not None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"line {number} is no job: {error}") from error


def _sent(remote: Remote, queue: str, batch: Batch) -> Any:
    pause_s = FIRST_PAUSE_S
    for left in range(TRIES - 1, -1, -1):
        try:
            return remote.post("v1", "queues", queue, "jobs", body=batch.jobs)
        except (NoAnswer, Problem) as error:
            if not left or not _may_repeat(error, batch):
                raise
        time.sleep(pause_s)
        pause_s *= 2
    raise AssertionError("the last try returns or raises")


def _may_repeat(error: NoAnswer | Problem, batch: Batch) -> bool:
    if isinstance(error, Problem) and error.code in NOTHING_DONE:
        return True
    return _is_unknown(error) and batch.is_repeatable


def _is_unknown(error: Refused) -> bool:
    if isinstance(error, NoAnswer):
        return error.is_unknown
    return isinstance(error, Problem) and error.code in UNKNOWN


def _stopped(batch: Batch, sent: int, error: Refused) -> Refused:
    """How far it came, so that the rest can be sent."""
    where = f"lines {batch.first} to {batch.last}"
    if _is_unknown(error):
        fate = f"{where} may or may not have been taken"
        if not batch.is_repeatable:
            fate += " and have no idempotency_key to be sent again with"
    else:
        fate = f"{where} were not taken"
    return Refused(f"{error.message}; {several(sent, 'job')} before were taken, {fate}")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    if str(path) == "-":
        yield sys.stdin.buffer
    else:
        with path.open("rb") as file:
            yield file
