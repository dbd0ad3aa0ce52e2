"""Fair levels: a flood costs the flooder, and nobody else (invariants 23 and 24)."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.commands import Ack, Lease
from headway.core.config import QueueConfig
from headway.core.entitlement import SLOT, Account, Ledger, WaterLevel
from headway.core.job import Job
from tests.core.machine import Machine, specs

QUEUE = QueueConfig(name="q", slo_ms=5_000, lease_ms=600_000)
SLOTS = 20


def brute_level(wants: list[tuple[float, float]], slots: float) -> float:
    """Water-filling by bisection: what everyone gets up to the level fills the slots."""
    if sum(want for want, _ in wants) <= slots:
        return float("inf")
    low, high = 0.0, slots / min(weight for _, weight in wants)
    for _ in range(100):
        middle = (low + high) / 2
        served = sum(min(want, middle * weight) for want, weight in wants)
        low, high = (middle, high) if served < slots else (low, middle)
    return low


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    wants=st.lists(
        st.tuples(st.floats(0.01, 200.0), st.sampled_from([0.25, 1.0, 2.0, 8.0])),
        min_size=1,
        max_size=30,
    ),
    slots=st.integers(1, 300),
)
def test_the_level_is_that_of_water_filling(
    wants: list[tuple[float, float]], slots: int
) -> None:
    """Within the width of a bucket, a quarter of a doubling."""
    water = WaterLevel()
    for number, (want, weight) in enumerate(wants):
        account = Account(f"t{number}", weight, 0)
        account.demand = int(want * SLOT)
        water.update(account, 0)
    level, exact = water.level(slots), brute_level(wants, slots)
    total = sum(want for want, _ in wants)
    if level == float("inf"):
        assert total <= 1.001 * slots
    elif exact == float("inf"):
        # A bucket is served or shared as a whole: some in it want a little less.
        assert total >= 0.5 * slots
    else:
        assert 0.7 * exact <= level <= 1.4 * exact


def test_accounts_leave_the_level_as_they_came() -> None:
    """Sums do not drift: with everyone gone there is no demand left."""
    water = WaterLevel()
    draw = random.Random(1)
    accounts = [Account(f"t{n}", draw.choice([0.5, 1.0, 3.0]), 0) for n in range(50)]
    for _ in range(2_000):
        account = draw.choice(accounts)
        water.drop(account)
        account.demand = draw.randrange(10 * SLOT)
        water.update(account, 0)
    for account in accounts:
        water.drop(account)
    assert water.level(1) == float("inf")


class Fleet:
    """Workers that take a second for each job, and tenants that send jobs."""

    def __init__(self, *, has_entitlement: bool = True) -> None:
        self.machine = Machine(QUEUE, has_entitlement=has_entitlement)
        self.running: list[tuple[int, Job]] = []
        self.waits: dict[tuple[str, int], int] = {}
        self.done: Counter[str] = Counter()
        self.late: Counter[str] = Counter()

    def run(self, seconds: int, rates: dict[str, int], slots: int = SLOTS) -> None:
        """Ten steps a second; rates are jobs per second."""
        for step in range(10 * seconds):
            machine = self.machine
            machine.now_ms += 100
            over = [job for end_ms, job in self.running if end_ms <= machine.now_ms]
            self.running = [one for one in self.running if one[0] > machine.now_ms]
            machine.decide(Ack([job.token for job in over]))
            for name, rate in rates.items():
                count = rate * (step + 1) // 10 - rate * step // 10
                if count:
                    machine.put("q", *specs(count, tenant=name))
            self._start(slots)

    def _start(self, slots: int) -> None:
        free = slots - len(self.running)
        before = len(self.machine.events)
        jobs = self.machine.lease(free) if free else []
        self.running += [(self.machine.now_ms + 1_000, job) for job in jobs]
        for event in self.machine.events[before:]:
            wait_ms = getattr(event, "wait_ms", None)
            if wait_ms is not None:
                tenant: str = event.tenant  # type: ignore[attr-defined]
                self.done[tenant] += 1
                self.late[tenant] += wait_ms > 5_000


QUIET = {f"quiet{n}": 1 for n in range(8)}


def test_a_flooder_is_over_its_share_and_the_quiet_are_not() -> None:
    """Invariant 24: eight tenants of one job a second beside a flood of 60."""
    fleet = Fleet()
    fleet.run(60, {**QUIET, "flood": 1})
    fleet.run(60, {**QUIET, "flood": 60})
    assert not any(fleet.late[tenant] for tenant in QUIET)
    ledger = fleet.machine.partition.book.shared.ledger
    now_ms = fleet.machine.now_ms
    assert ledger.is_danger(now_ms)
    level = ledger.level(now_ms)
    assert 10 <= level <= 16
    assert sum(fleet.done[tenant] for tenant in QUIET) >= 0.97 * 8 * 120


def test_a_flooder_spends_its_share_on_jobs_that_can_be_in_time() -> None:
    """Late jobs step aside: of what it starts in the flood, most is kept."""
    fleet, plain = Fleet(), Fleet(has_entitlement=False)
    for one in (fleet, plain):
        one.run(60, {**QUIET, "flood": 1})
        one.run(90, {**QUIET, "flood": 40})
    kept = fleet.done["flood"] - fleet.late["flood"]
    assert kept >= plain.done["flood"] - plain.late["flood"]
    assert kept >= 0.5 * fleet.done["flood"]


def test_without_danger_nobody_is_over_its_share() -> None:
    """One tenant may have every slot when nobody else wants them."""
    fleet = Fleet()
    fleet.run(30, {"only": 19})
    ledger = fleet.machine.partition.book.shared.ledger
    assert not ledger.over
    assert fleet.late["only"] == 0


def test_after_the_flood_the_order_is_as_before() -> None:
    """Invariant 29: nobody stays over its share, and the backlog goes."""
    fleet = Fleet()
    fleet.run(60, {**QUIET, "flood": 1})
    fleet.run(30, {**QUIET, "flood": 60})
    fleet.run(300, QUIET)
    ledger = fleet.machine.partition.book.shared.ledger
    assert not ledger.over
    assert ledger.leased_over == 0
    queue = fleet.machine.partition.book.queues["q"]
    assert queue.ready <= 8
    flood = ledger.accounts.get("flood")
    assert flood is None or flood.leased == flood.want == 0


def test_fresh_names_share_one_account_while_there_is_danger() -> None:
    """A flood under many names gains little against tenants known before."""
    fleet = Fleet()
    fleet.run(60, QUIET)
    for second in range(60):
        fleet.run(1, {**QUIET, **{f"mask{second}-{n}": 1 for n in range(40)}})
    assert sum(fleet.late[tenant] for tenant in QUIET) == 0


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_shares_in_danger_follow_weights(weight: float) -> None:
    """Invariant 23: two flooders, all slots taken."""
    fleet = Fleet()
    fleet.machine.put("q", *specs(1, tenant="a", weight=weight))
    fleet.run(60, {"a": 1, "b": 1})
    fleet.done.clear()
    fleet.run(120, {"a": 60, "b": 60})
    assert abs(fleet.done["a"] / fleet.done["b"] / weight - 1) < 0.1


def test_over_share_turns_get_a_little_in_any_case() -> None:
    """One in fifty slots, so that nobody starves altogether."""
    ledger = Ledger()
    ledger.leased = 100
    assert ledger.owes_over(0)
    ledger.leased_over = 3
    assert not ledger.owes_over(0)


def test_jobs_without_a_tenant_are_always_entitled() -> None:
    """Tenants share what remains."""
    fleet = Fleet()
    fleet.run(60, {"": 5, "a": 1, "b": 1})
    fleet.run(60, {"": 10, "a": 30, "b": 30})
    assert fleet.late[""] <= 0.01 * 900
    assert fleet.done[""] >= 0.95 * 900


def test_slots_are_the_most_that_were_busy_or_waiting_lately() -> None:
    machine = Machine(QUEUE)
    ledger = machine.partition.book.shared.ledger
    for _ in range(7):
        machine.ask(Lease(wait_until_ms=machine.now_ms + 2_000))
    assert ledger.slots(machine.now_ms) == 7
    machine.put("q", *specs(3, tenant="a"))
    assert ledger.slots(machine.now_ms) == 7
    machine.pass_ms(2_000)
    assert (ledger.leased, ledger.idle) == (3, 0)
    machine.pass_ms(30_000)
    ledger.slots(machine.now_ms)
    machine.pass_ms(30_000)
    assert ledger.slots(machine.now_ms) == 3


def test_entitlement_can_be_left_out() -> None:
    """For comparison: then nobody is ever over its share."""
    fleet = Fleet(has_entitlement=False)
    fleet.run(30, {**QUIET, "flood": 60})
    ledger = fleet.machine.partition.book.shared.ledger
    assert not ledger.over


def test_tenants_that_come_and_go_leave_nothing_behind() -> None:
    """However fast: averages are brought up to date for a few at a time only."""
    ledger = Ledger()
    ledger.trusts_until_ms = 1_000
    stays = [ledger.account(f"stays-{number}", 1.0, 0) for number in range(100)]
    for number in range(20_000):
        account = ledger.account(f"goes-{number}", 1.0, 0)
        assert account.group is account
        ledger.forget(account)
        assert len(ledger._untouched) < 1_000
    for account in stays:
        account.want = 1
    for now_ms in range(10_000, 20_000, 100):
        ledger.level(now_ms)
    assert {account.averaged_ms > 0 for account in stays} == {True}
