"""Through a pooler that gives every transaction another connection."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import headway
from headway.core.commands import Lease
from headway.integrations.postgres import Inbox
from headway.runtime.tenure import Tenure
from headway.server.inbox import enqueue_of
from headway.store.postgres.store import PostgresStore
from tests.postgres import shared
from tests.postgres.cluster import somebody_else
from tests.postgres.test_kills import Deaf
from tests.store.rows import Owner, batch, job, segment

PATIENCE_S = 60.0
SETTINGS = """[databases]
postgres = host=127.0.0.1 port={database}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
auth_type = any
pool_mode = transaction
default_pool_size = 4
server_round_robin = 1
"""


@pytest.fixture
def pooler() -> Iterator[str]:
    """Its address."""
    found = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        pytest.skip("there is no pgbouncer here")
    cluster = shared.cluster()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # Where another user can read it, unlike in the folder of a test.
    folder = Path(tempfile.mkdtemp(prefix="headway-pooler-"))
    folder.chmod(0o755)
    settings = folder / "pgbouncer.ini"
    text = SETTINGS.format(database=cluster.port, port=port)
    settings.write_text(text.replace("postgres = ", "postgres = user=postgres "))
    process = subprocess.Popen(
        [found, str(settings)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **({} if os.geteuid() else somebody_else()),
    )
    try:
        until_s = time.monotonic() + PATIENCE_S
        while not _answers(port):
            assert process.poll() is None
            assert time.monotonic() < until_s
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_store_works_through_a_pooler(pooler: str) -> None:
    partition = shared.new_partition()
    owner = Owner(PostgresStore(pooler, partition, part_events=5))
    busy = psycopg.connect(pooler, prepare_threshold=None)
    for number in range(1, 20):
        # Somebody holds a connection, so the next transaction has another.
        busy.execute("SELECT 1")
        owner.commit(
            batch(
                puts=[job(number)],
                moves=[(1, b"m", number, 0, None, number)],
                segment=segment(number),
                history_before=number - 5,
            )
        )
        if number % 3 == 0:
            busy.commit()
    busy.close()
    assert len(owner.store.jobs(list(range(20)))) == 19
    assert owner.store.turns(1, None, 10, 3)[0][3] == 1
    assert [part.first for part in owner.store.history(15, 10**6)] == [
        15,
        16,
        17,
        18,
        19,
    ]
    owner.store.close()


def test_the_inbox_is_taken_in_without_hints(pooler: str) -> None:
    partition = shared.new_partition()
    tenure = Tenure(pooler, partition, read=enqueue_of, heard=Deaf())
    try:
        with psycopg.connect(pooler, prepare_threshold=None) as connection:
            Inbox(partition).enqueue(connection, "mail", headway.spec(b"pooled"))
        handed = tenure.submit(Lease(wait_ms=60_000)).result(PATIENCE_S)
        assert [job.payload for job in handed.jobs] == [b"pooled"]
    finally:
        tenure.close()
