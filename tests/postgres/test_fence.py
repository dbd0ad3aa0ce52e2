"""A write of an owner that was replaced while it wrote: it is seen, or it is refused.

A queue that read its epoch without a lock lost tasks in nine steps. They are taken here
one by one, with the old owner's write held where it can do most harm.
"""

import re
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from headway.core.commands import Accepted, Configure, Enqueue, Lease
from headway.core.config import QueueConfig
from headway.core.spec import JobSpec
from headway.runtime.clock import Clock
from headway.runtime.errors import OwnerStopped
from headway.runtime.owner import Ask, Owner, Reply
from headway.runtime.views import Handed
from headway.store.errors import Fenced
from headway.store.postgres.commit_2_sql import COMMIT_2
from headway.store.postgres.store import PostgresStore
from tests.postgres import shared

BARRIER = 4711
PATIENCE_S = 60.0
HOLD = f"""
CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared({BARRIER});
    RETURN NULL;
END $$;
CREATE TRIGGER hold BEFORE INSERT ON headway.jobs
    FOR EACH STATEMENT EXECUTE FUNCTION public.hold();
"""
WAITING = """SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'"""


class Reign:
    """An owner of the partition, and the time it goes by."""

    def __init__(self, address: str) -> None:
        self.owner = Owner(PostgresStore(address, "p1"))
        self.clock: Clock = self.owner.take_over()

    def say(self, ask: Ask) -> Reply:
        answers = dict(self.owner.step([ask], self.clock.now_ms()))
        while ask not in answers:
            answers = dict(self.owner.step([], self.clock.now_ms()))
        return answers[ask]

    def drain(self) -> list[bytes]:
        found: list[bytes] = []
        for _ in range(10):
            handed = self.say(Lease(max=100, lease_ms=3_600_000))
            assert isinstance(handed, Handed)
            found += [job.payload for job in handed.jobs]
        return found


@pytest.fixture
def address() -> Iterator[str]:
    with shared.database("fence") as made:
        with psycopg.connect(made, autocommit=True) as connection:
            connection.execute(HOLD)
        yield made


@contextmanager
def barrier(address: str) -> Iterator[Any]:
    """Inserts of jobs wait, inside their transactions, until it is left."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (BARRIER,))
        yield connection


def until_waiting(connection: Any, count: int, or_done: Future[Any]) -> None:
    stop = threading.Event()
    watchdog = threading.Timer(PATIENCE_S, stop.set)
    watchdog.start()
    while not or_done.done():
        if connection.execute(WAITING).fetchone()[0] >= count:
            break
        assert not stop.is_set(), "nobody waits"
    watchdog.cancel()


def nine_steps(address: str) -> tuple[bool, list[bytes]]:
    """Whether the old owner's enqueue was acknowledged, and what the new one finds."""
    old = Reign(address)
    old.say(Configure(QueueConfig(name="q")))
    with ThreadPoolExecutor(2) as threads:
        with barrier(address) as held:
            # 1, 2: a call comes in, and the old owner writes.
            ask = Enqueue("q", [JobSpec(payload=b"held")])
            written = threads.submit(old.say, ask)
            until_waiting(held, 1, written)
            # 3, 4, 5: ownership changes, and the new owner reads all there is.
            began = threads.submit(lambda: _begun(address))
            until_waiting(held, 2, began)
        # 6, 7: the write takes effect, and the old owner says so.
        is_acked = isinstance(_outcome(written), Accepted)
        # 8, 9: the new owner goes on from where it is.
        new, first = began.result(PATIENCE_S)
    found = first + new.drain()
    new.owner.close()
    old.owner.close()
    return is_acked, found


def _begun(address: str) -> tuple[Reign, list[bytes]]:
    new = Reign(address)
    return new, new.drain()


def _outcome(written: Future[Reply]) -> Reply | None:
    try:
        return written.result(PATIENCE_S)
    except OwnerStopped:
        return None


def without_the_lock(address: str) -> None:
    """The epoch is read, but whoever takes over need not wait for who has read it."""
    text, count = re.subn(r"( WHERE id = of_partition) FOR SHARE;", r"\1;", COMMIT_2)
    assert count == 1
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            text.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
        )


def test_what_was_acknowledged_is_found_by_the_next_owner(address: str) -> None:
    is_acked, found = nine_steps(address)
    assert found == ([b"held"] if is_acked else [])
    assert is_acked, "it had read its epoch before it was replaced"


def test_without_the_lock_the_same_steps_lose_a_job(address: str) -> None:
    """Or the test above would show nothing."""
    without_the_lock(address)
    assert nine_steps(address) == (True, [])


def test_a_write_that_comes_after_the_next_owner_is_refused(address: str) -> None:
    old = Reign(address)
    old.say(Configure(QueueConfig(name="q")))
    with ThreadPoolExecutor(1) as threads:
        with psycopg.connect(address) as connection:
            # Whoever takes over, and is not done with it yet.
            connection.execute("UPDATE headway.partitions SET epoch = epoch + 1")
            ask = Enqueue("q", [JobSpec(payload=b"late")])
            written = threads.submit(old.say, ask)
            until_waiting(connection, 1, written)
            assert not written.done()
        with pytest.raises(OwnerStopped) as stopped:
            written.result(PATIENCE_S)
    assert isinstance(stopped.value.__cause__, Fenced)
    new = Reign(address)
    assert new.drain() == []
    new.owner.close()


def test_many_owners_at_once_get_an_epoch_each(address: str) -> None:
    stores = [PostgresStore(address, "p1") for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        epochs = list(threads.map(lambda store: store.take_over(), stores * 5))
    assert sorted(epochs) == list(range(1, 41))
    for store in stores:
        store.close()
