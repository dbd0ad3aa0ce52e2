"""What is acknowledged is there, however often the database is killed meanwhile."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any

import psycopg
import pytest

from headway.core.commands import Accepted, Ack, Configure, Enqueue, Lease
from headway.core.config import QueueConfig
from headway.core.spec import JobSpec
from headway.runtime.errors import RuntimeFailure
from headway.runtime.owner import Ask
from headway.runtime.tenure import Tenure
from headway.runtime.views import Handed
from headway.server.inbox import enqueue_of
from headway.store.postgres.reader import open_reader
from tests.postgres import shared
from tests.postgres.cluster import Cluster

PATIENCE_S = 120.0
TERMINATE = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'headway' AND pid <> pg_backend_pid()"""
LEASE_MS = 3_600_000
_NEVER = threading.Event()


class Deaf:
    """Nobody who would have to be told."""

    def replaced(self) -> None:
        raise AssertionError("nobody else has taken over")

    def found(self, queue: str) -> None:
        pass

    def refused(self, queue: str, why: str) -> None:
        raise AssertionError(why)


class Account:
    """Enqueues one job after another, and keeps account of what it was told."""

    def __init__(self, tenure: Tenure, name: str) -> None:
        self._tenure = tenure
        self._name = name
        self.attempted: set[bytes] = set()
        self.acked: set[bytes] = set()
        self.failures = 0

    def work(self, is_over: Callable[[], bool]) -> None:
        number = 0
        while not is_over():
            number += 1
            payload = f"{self._name} {number}".encode()
            self.attempted.add(payload)
            try:
                ask = Enqueue("q", [JobSpec(payload=payload)])
                reply = self._tenure.submit(ask).result(PATIENCE_S)
            except RuntimeFailure:
                self.failures += 1
                _NEVER.wait(0.01)
                continue
            assert isinstance(reply, Accepted)
            self.acked.add(payload)


def insist(tenure: Tenure, ask: Callable[[], Ask]) -> Any:
    """Asks until there is an answer."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return tenure.submit(ask()).result(PATIENCE_S)
        except RuntimeFailure:
            assert time.monotonic() < until_s
            _NEVER.wait(0.01)


def drain(tenure: Tenure) -> list[bytes]:
    found: list[bytes] = []
    while True:
        handed = insist(tenure, lambda: Lease(max=500, lease_ms=LEASE_MS))
        assert isinstance(handed, Handed)
        if not handed.jobs:
            return found
        found += [job.payload for job in handed.jobs]
        insist(tenure, partial(Ack, [job.token for job in handed.jobs]))


@contextmanager
def at_work(tenure: Tenure, workers: int = 4) -> Iterator[list[Account]]:
    over = threading.Event()
    accounts = [Account(tenure, f"w{number}") for number in range(workers)]
    threads = [
        threading.Thread(target=account.work, args=(over.is_set,))
        for account in accounts
    ]
    for thread in threads:
        thread.start()
    try:
        yield accounts
    finally:
        over.set()
        for thread in threads:
            thread.join()


def until_acked(accounts: list[Account], more: int) -> None:
    """Jobs go on being acknowledged: the database is back."""
    wanted = sum(len(account.acked) for account in accounts) + more
    until_s = time.monotonic() + PATIENCE_S
    while sum(len(account.acked) for account in accounts) < wanted:
        assert time.monotonic() < until_s, "nothing is acknowledged any more"
        _NEVER.wait(0.01)


def check(harm: Callable[[Cluster], None], times: int, seed: int) -> int:
    """Does harm so often under load; answers how many calls had no answer."""
    cluster = shared.cluster()
    partition = shared.new_partition()
    chance = Random(seed)
    tenure = Tenure(cluster.address, partition, read=enqueue_of, heard=Deaf())
    try:
        insist(tenure, lambda: Configure(QueueConfig(name="q")))
        with at_work(tenure) as accounts:
            for _ in range(times):
                until_acked(accounts, chance.randrange(1, 60))
                harm(cluster)
            until_acked(accounts, 10)
        found = drain(tenure)
    finally:
        tenure.close()
    acked = set().union(*(account.acked for account in accounts))
    attempted = set().union(*(account.attempted for account in accounts))
    assert acked - set(found) == set(), "lost"
    assert set(found) - attempted == set(), "unexpected"
    assert len(found) == len(set(found)), "twice"
    _check_history(cluster.address, partition)
    return sum(account.failures for account in accounts)


def _check_history(address: str, partition: str) -> None:
    reader = open_reader(address, partition)
    number = 1
    while segments := reader.history(number, 1 << 20):
        for segment in segments:
            assert segment.first == number, "a gap in history"
            number += segment.count
    reader.close()


def terminate(cluster: Cluster) -> None:
    with psycopg.connect(cluster.address, autocommit=True) as connection:
        connection.execute(TERMINATE)


def kill(cluster: Cluster) -> None:
    cluster.kill()
    cluster.start()


def test_connections_are_cut_in_the_middle_of_commits() -> None:
    assert check(terminate, 15, seed=1) > 0, "no call was cut off"


def test_the_server_is_killed_under_load() -> None:
    assert check(kill, 2, seed=2) > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_connections_are_cut_many_times(seed: int) -> None:
    assert check(terminate, 100, seed) > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_the_server_is_killed_many_times(seed: int) -> None:
    assert check(kill, 20, seed) > 0
