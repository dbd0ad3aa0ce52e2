"""Very many transactions at once: exactly the committed ones run."""

import asyncio
from collections.abc import Iterator
from random import Random

import asyncpg
import pytest

import headway
from headway.store.postgres.migrations import migrate
from tests.postgres import shared
from tests.postgres.cluster import running
from tests.postgres.watched import QUIET_S, Watched


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched()
    yield made
    made.tenure.close()


async def many(watched: Watched, connections: int, each: int, seed: int) -> set[str]:
    """Transactions side by side: some commit, some roll back, some are cut off."""
    chance = Random(seed)
    committed: set[str] = set()
    together = asyncio.Barrier(connections)
    door = asyncio.Semaphore(20)

    async def one(name: str) -> None:
        fate = chance.choice(("commit", "commit", "roll back", "die"))
        async with door:
            connection = await asyncpg.connect(watched.address, timeout=300)
        transaction = connection.transaction()
        await transaction.start()
        spec = headway.spec(name.encode())
        await watched.inbox.aenqueue(connection, "mail", spec)
        # All of them are under way before the first one ends.
        await together.wait()
        if fate == "commit":
            await transaction.commit()
            committed.add(name)
        elif fate == "roll back":
            await transaction.rollback()
        else:
            # As if its process had died between the statement and the commit.
            connection.terminate()
            return
        await connection.close()

    async def worker(number: int) -> None:
        for turn in range(each):
            await one(f"{number}.{turn}")

    await asyncio.gather(*(worker(number) for number in range(connections)))
    return committed


@pytest.mark.parametrize(
    ("connections", "each"),
    [(40, 5), pytest.param(150, 20, marks=pytest.mark.long)],
)
def test_of_many_transactions_exactly_the_committed_ones_run(
    watched: Watched, connections: int, each: int
) -> None:
    check_many(watched, connections, each)


@pytest.mark.long
def test_of_a_thousand_transactions_at_once_exactly_the_committed_ones_run() -> None:
    shared.cluster()
    with running(connections=1_300) as cluster:
        migrate(cluster.address)
        watched = Watched(cluster.address)
        try:
            check_many(watched, 1_000, 2)
        finally:
            watched.tenure.close()


def check_many(watched: Watched, connections: int, each: int) -> None:
    committed = asyncio.run(many(watched, connections, each, seed=3))
    found = watched.taken(len(committed))
    assert sorted(found) == sorted(committed)
    assert watched.taken(1, QUIET_S) == []
    assert watched.left() == []
