"""What a lease will want is read before it is asked for."""

import pytest

from headway.core.bounds import Bounds
from headway.core.commands import Ack, Enqueue, Lease
from headway.core.spec import JobSpec
from headway.runtime.views import Handed
from headway.store.port import Batch
from tests.runtime.desk import Desk

TENANTS = 3_000
BATCH = 100


def test_a_lease_over_many_tenants_does_not_run_dry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk(Bounds(turns_max=1_000))
    for _ in range(3):
        specs = [JobSpec(tenant=f"t{number}") for number in range(TENANTS)]
        desk.ask(Enqueue("q", specs))
    desk.open()
    desk.lease(BATCH)
    commits: list[Batch] = []
    write = desk.store.commit

    def commit(batch: Batch, epoch: int) -> None:
        commits.append(batch)
        write(batch, epoch)

    monkeypatch.setattr(desk.store, "commit", commit)
    # To the end of the first round, in which everybody is served once.
    for number in range(2, TENANTS // BATCH):
        commits.clear()
        handed = desk.ask(Lease(max=BATCH))
        assert isinstance(handed, Handed)
        assert (number, len(handed.jobs), len(commits)) == (number, BATCH, 1)
        desk.ask(Ack([job.token for job in handed.jobs]))
