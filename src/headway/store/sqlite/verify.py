"""Looks through a store's file for what can't be right, and changes nothing in it."""

from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import apsw
import msgspec

from headway.store.errors import Contradiction, StoreError
from headway.store.port import DEAD
from headway.store.sqlite import bundles, log, schema
from headway.store.sqlite import statements as sql
from headway.store.sqlite.connections import open_for_reader
from headway.store.sqlite.options import SqliteOptions
from headway.store.sqlite.pending import Pending, unpack
from headway.store.sqlite.pragmas import PAGE_BYTES
from headway.store.sqlite.writes import check as check_changes

FOUND_MAX: Final = 100
"""Of one kind of damage no more is told."""


def problems(path: Path, options: SqliteOptions | None = None) -> list[str]:
    """What is wrong, in plain words; empty if all is well."""
    try:
        connection = open_for_reader(path, options)
    except StoreError as error:
        return [] if is_unborn(path, options, error) else [str(error)]
    try:
        vfs = None if options is None else options.vfs
        lost = log.damage(connection, str(path), vfs)
        return ([] if lost is None else [f"log: {lost}"]) + _found(connection)
    except apsw.Error as error:
        return [f"log: {error}"]
    finally:
        connection.close()


def is_unborn(path: Path, options: SqliteOptions | None, error: StoreError) -> bool:
    """Its maker was killed while it wrote the first page, which is to be taken back.

    Only there SQLite keeps such a journal, and only an owner may act on it.
    """
    if not isinstance(error.__cause__, apsw.ReadOnlyError):
        return False
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB
    vfs = (options and options.vfs) or ""
    file = apsw.VFSFile(vfs, str(path), [flags, 0])
    try:
        return file.xFileSize() <= PAGE_BYTES
    finally:
        file.xClose()


def _found(connection: apsw.Connection) -> list[str]:
    found: list[str] = []
    # its maker was killed before there was anything in it: the next one goes on
    is_empty = schema.known_version(connection) == 0
    for check in CHECKS[:1] if is_empty else CHECKS:
        try:
            found += check(connection)
        except apsw.Error as error:
            found.append(f"{check.__name__.strip('_')}: {error}")
            return found  # what comes after would read the same damage
    return found


def _integrity(connection: apsw.Connection) -> Iterator[str]:
    for (line,) in connection.execute(f"PRAGMA integrity_check({FOUND_MAX})"):
        if line != "ok":
            yield f"integrity: {line}"


def _schema(connection: apsw.Connection) -> Iterator[str]:
    """Of the file's own version, not of the newest."""
    fresh = apsw.Connection(":memory:")
    schema.migrate(fresh, schema.MIGRATIONS[: schema.known_version(connection)])
    expected, found = _tables(fresh), _tables(connection)
    fresh.close()
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            yield f"schema: {name} is not as it should be"


def _tables(connection: apsw.Connection) -> dict[str, str | None]:
    return dict(connection.execute("SELECT name, sql FROM sqlite_schema"))


def _epoch(connection: apsw.Connection) -> Iterator[str]:
    epoch = connection.execute("SELECT value FROM meta WHERE name = 'epoch'").get
    if epoch is None or epoch < 0:
        yield f"epoch: {epoch}"


def _history(connection: apsw.Connection) -> Iterator[str]:
    statement = """SELECT * FROM (
        SELECT first, count, lead(first) OVER (ORDER BY first) AS next FROM history)
        WHERE next <> first + count OR first < 1 LIMIT ?"""
    for first, count, following in connection.execute(statement, (FOUND_MAX,)):
        yield (
            f"history: segment {first} has {count} events, the next begins at {following}"
        )


def _lanes(connection: apsw.Connection) -> Iterator[str]:
    statement = "SELECT seq, lane FROM jobs WHERE lane < ? LIMIT ?"
    for seq, lane in connection.execute(statement, (DEAD, FOUND_MAX)):
        yield f"jobs: job {seq} is in lane {lane}, which does not exist"


def _bodies(connection: apsw.Connection) -> Iterator[str]:
    lost = """SELECT seq FROM jobs WHERE body IS NULL
        AND NOT EXISTS(SELECT 1 FROM bodies WHERE bodies.seq = jobs.seq) LIMIT ?"""
    for (seq,) in connection.execute(lost, (FOUND_MAX,)):
        yield f"bodies: job {seq} has no body"
    left = """SELECT seq FROM bodies WHERE NOT EXISTS(
        SELECT 1 FROM jobs WHERE jobs.seq = bodies.seq AND jobs.body IS NULL) LIMIT ?"""
    for (seq,) in connection.execute(left, (FOUND_MAX,)):
        yield f"bodies: body {seq} belongs to no job"


def _held(connection: apsw.Connection) -> Iterator[str]:
    if schema.known_version(connection) < schema.HELD_SINCE:
        return
    left = """SELECT seq FROM held WHERE NOT EXISTS(
        SELECT 1 FROM jobs WHERE jobs.seq = held.seq) ORDER BY seq"""
    has_bundles = schema.known_version(connection) >= schema.BUNDLES_SINCE
    lost: list[int] = []
    with connection:  # as of one moment: an owner may be sorting in meanwhile
        for some in _batches(seq for (seq,) in connection.execute(left)):
            there = bundles.where(connection, some) if has_bundles else {}
            lost += [seq for seq in some if seq not in there]
    for seq in lost[:FOUND_MAX]:
        yield f"held: job {seq} is held and not there"


def _bundles(connection: apsw.Connection) -> Iterator[str]:
    """Each is what its row says, none overlaps with another, none is left empty."""
    if schema.known_version(connection) < schema.BUNDLES_SINCE:
        return
    last = 0
    tails: dict[tuple[int, bytes, int], int] = {}
    statement = "SELECT seq, lane, turn, first, second, last, count, blob FROM bundles"
    for seq, lane, turn, first, second, end, count, blob in connection.execute(
        f"{statement} ORDER BY seq"
    ):
        try:
            members = bundles.decode(blob)
        except msgspec.MsgspecError as error:
            yield f"bundles: bundle {seq}: {error}"
            continue
        seqs = [member[0] for member in members]
        seconds = [member[1] for member in members]
        said = (seq, end, second, count)
        if not members or said != (seqs[0], seqs[-1], seconds[-1], len(members)):
            yield f"bundles: bundle {seq} is not what its row says"
            continue
        if seqs != sorted(set(seqs)) or seconds != sorted(seconds):
            yield f"bundles: bundle {seq} is not in order"
        spot = (lane, turn, first)
        if seq <= last or seconds[0] < tails.get(spot, seconds[0]):
            yield f"bundles: bundle {seq} overlaps with one before it"
        if lane < 0:
            yield f"bundles: bundle {seq} is in lane {lane}"
        last, tails[spot] = end, second
        yield from _members(connection, seq, set(seqs))


def _members(
    connection: apsw.Connection, bundle: int, members: set[int]
) -> Iterator[str]:
    left = "SELECT seq FROM gone WHERE bundle = ?"
    gone = {seq for (seq,) in connection.execute(left, (bundle,))}
    if gone - members:
        yield f"bundles: job {min(gone - members)} has left bundle {bundle} and was not in it"
    if gone == members:
        yield f"bundles: bundle {bundle} is empty"
    there = apsw.carray(array("q", sorted(members - gone) or [0]))
    for (seq,) in connection.execute(
        "SELECT seq FROM jobs WHERE seq IN carray(?)", (there,)
    ):
        yield f"bundles: job {seq} is in bundle {bundle} and has a row"


def _gone(connection: apsw.Connection) -> Iterator[str]:
    if schema.known_version(connection) < schema.BUNDLES_SINCE:
        return
    lost = """SELECT bundle, seq FROM gone WHERE NOT EXISTS(
        SELECT 1 FROM bundles WHERE bundles.seq = gone.bundle) LIMIT ?"""
    for bundle, seq in connection.execute(lost, (FOUND_MAX,)):
        yield f"bundles: job {seq} has left bundle {bundle}, which is not there"


def _batches(seqs: Iterable[int]) -> Iterator[list[int]]:
    numbers = iter(seqs)
    while some := list(islice(numbers, 1_000)):
        yield some


def _pending(connection: apsw.Connection) -> Iterator[str]:
    """Commits that wait to be sorted in must be such as could have been made."""
    version = schema.known_version(connection)
    if version < schema.PENDING_SINCE:
        return
    has_bundles = version >= schema.BUNDLES_SINCE
    pending = Pending()
    with connection:  # as of one moment: an owner may be sorting in meanwhile
        for number, blob in connection.execute(sql.PENDING):
            try:
                puts, moves, ends = unpack(blob)
                check_changes(
                    connection, pending, puts, moves, ends, has_bundles=has_bundles
                )
            except (Contradiction, msgspec.MsgspecError) as error:
                yield f"pending: commit {number}: {error}"
                return  # what comes after is built on it
            pending.add(puts, moves, ends)


CHECKS: Final[tuple[Callable[[apsw.Connection], Iterator[str]], ...]] = (
    _integrity,
    _schema,
    _epoch,
    _history,
    _lanes,
    _bodies,
    _bundles,
    _gone,
    _held,
    _pending,
)
