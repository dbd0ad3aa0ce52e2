"""Everything that is left in a store is delivered, by a clock that runs ahead."""

from headway.core.commands import Ack, Lease, Redrive
from headway.core.errors import RuleBroken
from headway.core.states import LIVE
from headway.runtime.owner import Owner
from headway.runtime.views import Count, Handed
from headway.store.port import DEAD, Store
from tests.faults.crash.account import Account, Held
from tests.faults.crash.jobs import LONG_MS, QUEUES, name_of


def drain(owner: Owner, store: Store, account: Account, now_ms: int) -> None:
    """Dead letters, too. Where nothing is ready, the next event brings the time."""
    for row in store.turns(DEAD, None, 10_000, 1_000_000):
        owner.step([Redrive(row[0])], now_ms)
    while is_any_left(owner, now_ms):
        if not deliver_some(owner, account, now_ms):
            next_ms = owner.next_ms()
            assert next_ms is not None, "jobs are left that nothing will move"
            now_ms = max(now_ms, next_ms)


def deliver_some(owner: Owner, account: Account, now_ms: int) -> int:
    lease = Lease("drain", None, 500, LONG_MS)
    ((_, handed),) = owner.step([lease], now_ms)
    assert isinstance(handed, Handed)
    for job in handed.jobs:
        held = Held(job.seq, job.token, now_ms, job.lease_until_ms, True)
        account.deliver(held, name_of(job.payload))
    if handed.jobs:
        owner.step([Ack([job.token for job in handed.jobs])], now_ms)
    return len(handed.jobs)


def is_any_left(owner: Owner, now_ms: int) -> bool:
    answers = owner.step([Count(queue) for queue in QUEUES], now_ms)
    known = [counts for _, counts in answers if not isinstance(counts, RuleBroken)]
    return any(getattr(counts, state) for counts in known for state in LIVE)
