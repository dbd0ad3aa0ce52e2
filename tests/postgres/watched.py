"""A partition with its owner, and an inbox that a test leaves jobs in."""

import time
from typing import Any

import psycopg

from headway.core.commands import Ack, Lease
from headway.integrations.postgres import Inbox
from headway.runtime.tenure import Tenure
from headway.runtime.views import Handed
from headway.server.inbox import enqueue_of
from tests.postgres import shared

PATIENCE_S = 60.0
QUIET_S = 0.6
"""Longer than two looks at the inbox: what is not here by then was not left there."""


class Watched:
    """A partition with its owner, and whatever that one tells."""

    def __init__(self, address: str = "") -> None:
        self.address = address or shared.cluster().address
        self.partition = shared.new_partition()
        self.inbox = Inbox(self.partition)
        self.refusals: list[tuple[str, str]] = []
        self.open()

    def open(self) -> None:
        self.tenure = Tenure(self.address, self.partition, read=enqueue_of, heard=self)

    def replaced(self) -> None:
        raise AssertionError("nobody else has taken over")

    def found(self, queue: str) -> None:
        pass

    def refused(self, queue: str, why: str) -> None:
        self.refusals.append((queue, why))

    def ask(self, ask: Any) -> Any:
        return self.tenure.submit(ask).result(PATIENCE_S)

    def taken(self, count: int, wait_s: float = PATIENCE_S) -> list[str]:
        """Payloads, as they come; fewer if no more come for so long."""
        found: list[str] = []
        until_s = time.monotonic() + wait_s
        while len(found) < count and time.monotonic() < until_s:
            handed = self.ask(Lease(max=100, lease_ms=3_600_000, wait_ms=100))
            assert isinstance(handed, Handed)
            found += [job.payload.decode() for job in handed.jobs]
            if handed.jobs:
                self.ask(Ack([job.token for job in handed.jobs]))
        return found

    def left(self) -> list[tuple[str, str | None]]:
        """What is in the inbox."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            found: list[tuple[str, str | None]] = connection.execute(
                """SELECT queue, refused FROM headway.inbox
                JOIN headway.partitions AS p ON p.id = partition
                WHERE p.name = %s ORDER BY 1""",
                (self.partition,),
            ).fetchall()
        return found
