"""A small workload whose every step is known: the same commits each time it runs."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import apsw

from headway.core.commands import (
    Ack,
    Command,
    Configure,
    Enqueue,
    Extend,
    Lease,
    Nack,
    Release,
    Reply,
    Wait,
)
from headway.core.config import QueueConfig
from headway.core.spec import JobSpec
from headway.runtime.clock import Clock
from headway.runtime.errors import OwnerStopped
from headway.runtime.owner import Owner
from headway.runtime.views import Handed
from headway.store.errors import StoreError
from headway.store.port import Batch
from headway.store.sqlite.options import SqliteOptions
from headway.store.sqlite.snapshot import Snapshot
from headway.store.sqlite.store import SqliteStore

KIB: Final = 1024
START_MS: Final = 1_000_000
STEP_MS: Final = 1_000
OPTIONS: Final = {
    "passive": SqliteOptions(
        wal_passive_bytes=48 * KIB,
        wal_truncate_bytes=64 * 1024 * KIB,
        pending_rows=3,
        bundle_least=2,
    ),
    "truncate": SqliteOptions(
        wal_passive_bytes=48 * KIB, wal_truncate_bytes=48 * KIB, pending_bytes=KIB
    ),
}
"""Logs that are copied into the file, or cut off, in the middle of the workload; and
jobs that are sorted in there, or written anew."""
TABLES: Final = ("facts", "keys", "history")
Content = dict[str, list[tuple[Any, ...]]]


class Steps(Clock):
    """A clock that moves by the step."""

    def __init__(self) -> None:
        self.steps = 0

    def now_ms(self) -> int:
        return START_MS + self.steps * STEP_MS


def commands() -> Iterator[tuple[Command, Callable[[Handed], object]]]:
    """One commit each; what was handed out is told back to the next ones."""
    tokens: list[int] = []

    def hold(handed: Handed) -> None:
        tokens.extend(job.token for job in handed.jobs)

    def ignore(_answer: object) -> None:
        pass

    yield Configure(QueueConfig(name="mail")), ignore
    plain = JobSpec(payload=b"plain", tenant="a")
    yield Enqueue("mail", [plain]), ignore
    keyed = JobSpec(payload=b"keyed", tenant="b", idempotency_key="k")
    yield Enqueue("mail", [keyed, plain, plain]), ignore
    big = JobSpec(payload=bytes(9_000), tenant="c", slo_ms=5_000)
    yield Enqueue("mail", [big, plain]), ignore
    yield Enqueue("mail", [JobSpec(delay_ms=2_500, labels={"x": "y"})]), ignore
    yield Lease("w", None, 6, 3_600_000), hold
    yield Ack([tokens.pop(), tokens.pop()]), ignore
    yield Nack(tokens.pop(), "no luck", 60_000), ignore
    yield Release([tokens.pop()]), ignore
    yield Wait(tokens.pop(), "reply", 600_000), ignore
    yield Extend([tokens[0]], 7_200_000), ignore
    yield Reply("mail", "reply", b"answer"), ignore
    yield Nack(tokens.pop(), "hopeless", is_bury=True), ignore
    yield Enqueue("mail", [JobSpec(payload=bytes(20_000)), plain]), ignore
    yield Lease("w", None, 9, 3_600_000), hold
    yield Ack([tokens.pop(), tokens.pop()]), ignore


def run(store: SqliteStore, tell: Callable[[str], object]) -> None:
    """Opens, works and closes; tells each step before and after."""
    _run(Owner(store), tell)


def _run(owner: Owner, tell: Callable[[str], object]) -> None:
    clock = Steps()
    tell("try 0")
    owner.take_over(clock)
    tell("ok 0")
    for command, heed in commands():
        clock.steps += 1
        tell(f"try {clock.steps}")
        answers = owner.step([command], clock.now_ms())
        tell(f"ok {clock.steps}")
        heed(answers[0][1])  # type: ignore[arg-type]
    clock.steps += 1
    tell(f"try {clock.steps}")
    owner.close()
    tell(f"ok {clock.steps}")


def run_and_tell(store: SqliteStore, tell: Callable[[str], object]) -> None:
    """The same; what stops it is told, and so is what it says to one more call."""
    owner = Owner(store)
    try:
        _run(owner, tell)
    except (StoreError, OwnerStopped) as error:
        tell(f"failed {type(error).__name__}: {error}")
    try:
        owner.step([], START_MS)
    except OwnerStopped as error:
        tell(f"then {type(error).__name__}")
    owner.close()


def content(path: Path) -> Content:
    """Everything that a store holds, but for its epoch."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(5_000)
    try:
        found = {
            table: list(connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2"))
            for table in TABLES
        }
    finally:
        connection.close()
    with Snapshot(path) as snapshot:
        return {**found, "jobs": list(snapshot.rows())}


class _Watched(SqliteStore):
    def __init__(self, path: Path, options: SqliteOptions) -> None:
        super().__init__(path, options)
        self.seen: list[Content] = []

    def commit(self, batch: Batch, epoch: int) -> None:
        super().commit(batch, epoch)
        self.seen.append(content(self.path))


def expected(path: Path, options: SqliteOptions) -> list[list[Content]]:
    """What the store holds after each commit of each step; a step may have several."""
    store = _Watched(path, options)
    contents: list[list[Content]] = []

    def note(line: str) -> None:
        if line.startswith("ok"):
            contents.append([*store.seen, content(path)])
            store.seen.clear()

    run(store, note)
    return contents
