"""A process that wants one file for itself: it owns it, writes, is replaced, and so on.

Run as a script: the file, its own name, and the epoch that ends the race. It begins
when a line comes in, and says line by line what it was answered.
"""

import sys
from itertools import count
from pathlib import Path
from typing import Final, Literal

import apsw
import msgspec

from headway.core.commands import Accepted, Enqueue
from headway.core.spec import JobSpec
from headway.runtime.clock import Clock
from headway.runtime.errors import OwnerStopped
from headway.runtime.owner import Owner
from headway.store.errors import Fenced, StoreLocked
from headway.store.sqlite.options import SqliteOptions
from headway.store.sqlite.statements import EPOCH
from headway.store.sqlite.store import SqliteStore

WRITES: Final = 3
"""So many in a reign, or fewer; then the other one is waited for, and tried once more."""


class Said(msgspec.Struct):
    """What became of one thing that was tried."""

    epoch: int
    fate: Literal["owns", "accepted", "refused"]
    payload: bytes = b""
    seq: int = 0


def race(path: Path, name: str, last_epoch: int, *, is_locked: bool) -> None:
    """Owns the file again and again, until there were so many owners."""
    payloads = (f"{name} {number}".encode() for number in count())
    epoch = 0
    while epoch < last_epoch:
        owner = Owner(SqliteStore(path, SqliteOptions(is_locked=is_locked)))
        try:
            clock = owner.take_over()
        except StoreLocked:
            continue
        epoch = owner.epoch
        say(Said(epoch, "owns"))
        for _ in range(WRITES):
            is_owner = write(owner, next(payloads), clock)
            if not is_owner:
                break
        if is_owner and not is_locked and epoch < last_epoch:
            wait_for_another(path, epoch)
            write(owner, next(payloads), clock)
        owner.close()


def write(owner: Owner, payload: bytes, clock: Clock) -> bool:
    """Tries to; tells whether it still may."""
    command = Enqueue("q", [JobSpec(payload=payload)])
    try:
        ((_, reply),) = owner.step([command], clock.now_ms())
    except OwnerStopped as error:
        if not isinstance(error.__cause__, Fenced):
            raise
        say(Said(owner.epoch, "refused", payload))
        return False
    assert isinstance(reply, Accepted)
    say(Said(owner.epoch, "accepted", payload, reply.seqs[0]))
    return True


def wait_for_another(path: Path, epoch: int) -> None:
    """Looks at the file without a lock, so that the other one need not wait for long."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    while connection.execute(EPOCH).get == epoch:
        pass
    connection.close()


def say(said: Said) -> None:
    sys.stdout.write(msgspec.json.encode(said).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _, where, whose, until, lock = sys.argv
    sys.stderr.write("ready\n")
    sys.stderr.flush()
    sys.stdin.readline()
    race(Path(where), whose, int(until), is_locked=lock == "locked")
