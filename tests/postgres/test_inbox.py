"""Jobs that an application leaves inside its own transactions: the committed ones run."""

import asyncio
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

import headway
from headway.core.commands import Configure, Lease
from headway.core.config import QueueConfig
from headway.core.errors import BadValue
from headway.integrations.postgres import Inbox
from headway.runtime.inbox import PAGE, is_told
from tests.postgres import shared
from tests.postgres.watched import PATIENCE_S, QUIET_S, Watched

KILL = "SELECT pg_terminate_backend(%s)"


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched()
    yield made
    made.tenure.close()


def with_psycopg(watched: Watched, is_kept: bool) -> None:
    with psycopg.connect(watched.address) as connection:
        watched.inbox.enqueue(connection, "mail", headway.spec(b"1"))
        watched.inbox.enqueue(
            connection, "mail", headway.spec(b"2"), headway.spec(b"3")
        )
        if not is_kept:
            connection.rollback()


def with_async_psycopg(watched: Watched, is_kept: bool) -> None:
    async def leave() -> None:
        connection = await psycopg.AsyncConnection.connect(watched.address)
        async with connection:
            specs = [headway.spec(payload) for payload in (b"1", b"2", b"3")]
            await watched.inbox.aenqueue(connection, "mail", *specs)
            if not is_kept:
                await connection.rollback()

    asyncio.run(leave())


def with_asyncpg(watched: Watched, is_kept: bool) -> None:
    async def leave() -> None:
        connection = await asyncpg.connect(watched.address)
        transaction = connection.transaction()
        await transaction.start()
        for payload in (b"1", b"2", b"3"):
            spec = headway.spec(payload)
            await watched.inbox.aenqueue(connection, "mail", spec)
        await (transaction.commit() if is_kept else transaction.rollback())
        await connection.close()

    asyncio.run(leave())


def with_sqlalchemy(watched: Watched, is_kept: bool) -> None:
    address = watched.address.replace("postgresql:", "postgresql+psycopg:")
    engine = sqlalchemy.create_engine(address)
    with Session(engine) as session:
        watched.inbox.enqueue(session, "mail", headway.spec(b"1"), headway.spec(b"2"))
        (session.commit if is_kept else session.rollback)()
    with engine.connect() as connection:
        watched.inbox.enqueue(connection, "mail", headway.spec(b"3"))
        (connection.commit if is_kept else connection.rollback)()
    engine.dispose()


def with_async_sqlalchemy(watched: Watched, is_kept: bool) -> None:
    async def leave() -> None:
        address = watched.address.replace("postgresql:", "postgresql+asyncpg:")
        engine = create_async_engine(address)
        async with engine.connect() as connection:
            specs = [headway.spec(payload) for payload in (b"1", b"2", b"3")]
            await watched.inbox.aenqueue(connection, "mail", *specs)
            await (connection.commit() if is_kept else connection.rollback())
        await engine.dispose()

    asyncio.run(leave())


WAYS = [
    with_psycopg,
    with_async_psycopg,
    with_asyncpg,
    with_sqlalchemy,
    with_async_sqlalchemy,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_what_is_committed_runs_and_what_is_rolled_back_does_not(
    watched: Watched, way: Callable[[Watched, bool], None]
) -> None:
    way(watched, False)
    way(watched, True)
    assert sorted(watched.taken(3)) == ["1", "2", "3"]
    assert watched.taken(1, QUIET_S) == []
    assert watched.left() == []


def test_a_transaction_of_django_is_one_like_any_other(watched: Watched) -> None:
    """In a process of its own: Django's settings are for a whole process."""
    subprocess.run(
        [sys.executable, "-m", "tests.postgres.django_enqueue", watched.partition],
        env={**os.environ, "HEADWAY_STORE": watched.address},
        timeout=PATIENCE_S,
        check=True,
    )
    assert sorted(watched.taken(3)) == ["1", "2", "3"]
    assert watched.left() == []


def test_a_call_of_a_handler_is_left_as_it_would_be_sent(watched: Watched) -> None:
    app = headway.App("http://127.0.0.1:1")

    @app.job(queue="orders", kind="ship")
    def ship(order: int, *, express: bool = False) -> None: ...

    with psycopg.connect(watched.address) as connection:
        watched.inbox.call(connection, ship.options(tenant="t"), 7, express=True)
    handed = watched.ask(Lease(wait_ms=60_000))
    (job,) = handed.jobs
    assert (job.queue, job.spec.kind, job.spec.tenant) == ("orders", "ship", "t")
    assert json.loads(job.payload) == json.loads(
        ship.spec((7,), {"express": True}).payload
    )


def test_whoever_commits_later_is_not_passed_over(watched: Watched) -> None:
    """The one who wrote first commits last: its numbers are lower than those taken."""
    with psycopg.connect(watched.address) as slow:
        watched.inbox.enqueue(slow, "mail", headway.spec(b"slow"))
        for number in range(3):
            with psycopg.connect(watched.address) as quick:
                watched.inbox.enqueue(quick, "mail", headway.spec(b"%d" % number))
            assert watched.taken(1) == [str(number)]
        assert watched.taken(1, QUIET_S) == []
    assert watched.taken(1) == ["slow"]


def test_a_connection_that_dies_before_its_commit_leaves_nothing(
    watched: Watched,
) -> None:
    doomed = psycopg.connect(watched.address)
    watched.inbox.enqueue(doomed, "mail", headway.spec(b"never"))
    with psycopg.connect(watched.address, autocommit=True) as other:
        other.execute(KILL, (doomed.info.backend_pid,))
    with pytest.raises(psycopg.Error):
        doomed.commit()
    doomed.close()
    assert watched.taken(1, QUIET_S) == []
    assert watched.left() == []


def test_what_was_left_while_nobody_served_is_taken_by_the_next_owner(
    watched: Watched,
) -> None:
    watched.tenure.close()
    with psycopg.connect(watched.address) as connection:
        for number in range(50):
            spec = headway.spec(b"%02d" % number)
            watched.inbox.enqueue(connection, "mail", spec)
    watched.open()
    assert sorted(watched.taken(50)) == [f"{number:02}" for number in range(50)]


def test_a_hint_that_comes_with_an_answer_is_not_lost() -> None:
    """It is read with the answer, and nothing on the socket tells of it any more."""
    address = shared.cluster().address
    listening = psycopg.connect(address, autocommit=True)
    listening.execute("LISTEN headway_inbox_0")
    with psycopg.connect(address, autocommit=True) as other:
        other.execute("NOTIFY headway_inbox_0")
    listening.execute("SELECT pg_sleep(0.01)")
    readable, _, _ = select.select([listening.fileno()], [], [], 0)
    assert not readable
    assert is_told(listening)
    assert not is_told(listening)
    listening.close()


def test_a_hint_that_is_not_given_is_not_needed(watched: Watched) -> None:
    inbox = Inbox(watched.partition, is_told=False)
    with psycopg.connect(watched.address) as connection:
        inbox.enqueue(connection, "mail", headway.spec(b"quiet"))
    assert watched.taken(1) == ["quiet"]


def test_what_a_queue_has_no_room_for_waits_in_the_inbox(watched: Watched) -> None:
    watched.ask(Configure(QueueConfig(name="small", max_length=2)))
    with psycopg.connect(watched.address, autocommit=True) as connection:
        for number in range(6):
            watched.inbox.enqueue(connection, "small", headway.spec(b"%d" % number))
    assert sorted(watched.taken(6)) == list("012345")
    assert watched.left() == []


def test_a_queue_that_is_full_holds_up_no_other(watched: Watched) -> None:
    """Though more of it wait than are read at one go."""
    watched.ask(Configure(QueueConfig(name="full", max_length=1)))
    watched.ask(Configure(QueueConfig(name="other")))
    with psycopg.connect(watched.address) as connection:
        for _ in range(PAGE + 20):
            watched.inbox.enqueue(connection, "full", headway.spec(b"full"))
        watched.inbox.enqueue(connection, "other", headway.spec(b"other"))
    handed = watched.ask(Lease(queues=("other",), wait_ms=60_000))
    assert [job.payload for job in handed.jobs] == [b"other"]
    assert len(watched.left()) == PAGE + 19


def test_whoever_commits_later_is_not_passed_over_for_a_full_queue(
    watched: Watched,
) -> None:
    watched.ask(Configure(QueueConfig(name="full", max_length=1)))
    watched.ask(Configure(QueueConfig(name="other")))
    with psycopg.connect(watched.address) as slow:
        watched.inbox.enqueue(slow, "other", headway.spec(b"slow"))
        with psycopg.connect(watched.address) as quick:
            for _ in range(3):
                watched.inbox.enqueue(quick, "full", headway.spec(b"full"))
        until_s = time.monotonic() + PATIENCE_S
        while len(watched.left()) != 2:
            assert time.monotonic() < until_s
    # Within a few looks, and not only when all of the inbox is looked at again.
    handed = watched.ask(Lease(queues=("other",), wait_ms=20_000))
    assert [job.payload for job in handed.jobs] == [b"slow"]


def test_what_nobody_can_read_stays_with_the_reason(watched: Watched) -> None:
    rows = [
        ("mail", b"\xff\xff"),
        ("mail", b'{"kind": "one"}'),
        ("mail", b'[{"kind": "one", "unknown": 1}]'),
        ("no such name", b'[{"kind": "one"}]'),
        ("mail", json.dumps([{"idempotency_key": "k" * 2_000}]).encode()),
        ("mail", json.dumps([{"payload": "x" * (1 << 20)}]).encode()),
    ]
    with psycopg.connect(watched.address, autocommit=True) as connection:
        for queue, body in rows:
            connection.execute(
                "SELECT headway.enqueue_1(%s, %s, %s, true)",
                (watched.partition, queue, body),
            )
        watched.inbox.enqueue(connection, "mail", headway.spec(b"good"))
    assert watched.taken(1) == ["good"]
    left = watched.left()
    assert len(left) == len(rows)
    assert all(why is not None and why.startswith("bad_value") for _, why in left)
    assert len(watched.refusals) == len(rows)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda inbox: inbox.enqueue(None, "bad queue", headway.spec(b"1")),
        lambda inbox: inbox.enqueue(None, "mail", headway.spec(b"x" * (1 << 21))),
        lambda inbox: inbox.enqueue(None, "mail", headway.spec(b"1", kind="k" * 999)),
        lambda inbox: inbox.enqueue(None, "mail"),
        lambda inbox: inbox.enqueue(
            None, "mail", headway.spec(b"1", idempotency_key="k" * 1_025)
        ),
    ],
)
def test_what_would_be_refused_is_refused_at_once(
    wrong: Callable[[Inbox], None],
) -> None:
    with pytest.raises(BadValue):
        wrong(Inbox())


def test_an_application_can_do_no_more_than_leave_jobs(watched: Watched) -> None:
    with psycopg.connect(watched.address, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS shop")
        connection.execute("CREATE ROLE shop LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA headway TO shop")
        connection.execute(
            "GRANT EXECUTE ON FUNCTION headway.enqueue_1(text, text, bytea, boolean) "
            "TO shop"
        )
    address = watched.address.replace("postgres@", "shop@")
    with psycopg.connect(address, autocommit=True) as connection:
        watched.inbox.enqueue(connection, "mail", headway.spec(b"ours"))
        for table in ("inbox", "jobs", "partitions", "history"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"SELECT * FROM headway.{table}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(
                "INSERT INTO headway.inbox(partition, xact, queue, jobs) "
                "VALUES(1, 1, 'q', '')"
            )
        with pytest.raises(psycopg.Error, match="there is no partition"):
            Inbox("nowhere").enqueue(connection, "mail", headway.spec(b"1"))
    assert watched.taken(1) == ["ours"]
    with psycopg.connect(watched.address, autocommit=True) as connection:
        connection.execute("DROP OWNED BY shop")
        connection.execute("DROP ROLE shop")
