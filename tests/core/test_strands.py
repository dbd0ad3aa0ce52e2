"""A throttled, paused or closed strand never delays another one."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core import events
from headway.core.commands import (
    Ack,
    Command,
    Configure,
    Decision,
    Enqueue,
    Judge,
    Lease,
    SetKind,
    SetTenant,
    Verdict,
)
from headway.core.config import Concurrency, Order, QueueConfig, Shares
from headway.core.spec import JobSpec
from headway.core.windows import Window, WindowSet
from tests.core.machine import MINUTE_MS, Machine, specs

EVENING = WindowSet((Window(1_200, 1_260),))
BLOCKS = ("label", "share", "kind", "window", "tenant", "cap", "kind cap", "mute")
SLOTS = 2
FAIR = QueueConfig(
    name="q",
    lease_ms=60 * MINUTE_MS,
    lifetime_ms=600 * MINUTE_MS,
    limits=(
        Concurrency("doors", SLOTS, "door"),
        Shares("sides", 10, "side", {"shut": 20, "": 80}),
    ),
)


def changed(config: QueueConfig, **fields: object) -> QueueConfig:
    return msgspec.structs.replace(config, **fields)


def blocked_spec(block: str, tenant: str) -> JobSpec:
    """A job that can't start, and would be first if it could."""
    match block:
        case "label":
            return JobSpec(tenant=tenant, labels={"door": "shut"}, priority=-1)
        case "share":
            return JobSpec(tenant=tenant, labels={"side": "shut"}, priority=-1)
        case "kind":
            return JobSpec(tenant=tenant, kind="paused", priority=-1)
        case "kind cap":
            return JobSpec(tenant=tenant, kind="capped", priority=-1)
        case "window":
            return JobSpec(tenant=tenant, windows=EVENING, priority=-1)
        case "tenant":
            return JobSpec(tenant="paused", priority=-1)
        case "cap":
            return JobSpec(tenant="capped", priority=-1)
        case _:
            return JobSpec(tenant=f"mute {tenant}", priority=-1)


Arrival = tuple[int, int, int, str | None]
"""After how long, by which tenant, under which SLO, and blocked by what."""
ARRIVALS = st.lists(
    st.tuples(
        st.integers(0, 900),
        st.integers(0, 3),
        st.sampled_from([1_000, 5_000]),
        st.none() | st.sampled_from(BLOCKS),
    ),
    min_size=1,
    max_size=50,
)


class Shop:
    """A queue with everything that can block, and two workers."""

    def __init__(self, config: QueueConfig) -> None:
        self.machine = Machine(config, has_entitlement=False)
        shut = {"door": "shut", "side": "shut"}
        self.machine.put("q", JobSpec(labels=shut, cost=2, tenant="holder"))
        if config.has_throttler:
            self.machine.lease()
            self.machine.ask(Judge(1, Verdict.START))
        assert len(self.machine.lease()) == 1
        self.machine.decide(
            SetTenant("q", "paused", is_paused=True),
            SetTenant("q", "capped", cap=0),
            SetKind("q", "paused", is_paused=True),
            SetKind("q", "capped", cap=0),
        )
        self.waits = 0
        self.running: list[tuple[int, int]] = []
        self.found: list[tuple[int, str]] = []

    def until(self, at_ms: int | None) -> None:
        """Works off whatever ends by then; None means all of it."""
        while self.running and (at_ms is None or min(self.running)[0] <= at_ms):
            self.machine.now_ms = min(self.running)[0]
            self.step()
        if at_ms is not None:
            self.machine.now_ms = at_ms

    def step(self, *commands: Command) -> None:
        now_ms = self.machine.now_ms
        done = [token for end_ms, token in self.running if end_ms <= now_ms]
        self.running = [one for one in self.running if one[0] > now_ms]
        more = [
            Lease("w", None, 1, None, now_ms + 500 * MINUTE_MS)
            for _ in range(SLOTS - len(self.running) - self.waits)
        ]
        self.waits += len(more)
        self._see(self.machine.decide(*commands, Ack(done), *more))

    def _see(self, decision: Decision) -> None:
        for event in decision.events:
            if isinstance(event, events.Leased):
                headers = self.machine.partition.book.jobs[event.seq].spec.headers
                assert headers is not None
                assert "block" not in headers, "a blocked job started"
                number = headers["number"]
                self.found.append((event.at_ms, number))
                self.waits -= 1
                end_ms = event.at_ms + 300 + 70 * (int(number) % 5)
                self.running.append((end_ms, event.token))
        free = [job for job in decision.asks if "mute" not in job.spec.tenant]
        if free:
            self._see(
                self.machine.decide(*(Judge(job.seq, Verdict.START) for job in free))
            )


def starts_of(
    arrivals: list[Arrival], config: QueueConfig, *, has_blocked: bool
) -> list[tuple[int, str]]:
    """When each free job starts, and which it is."""
    shop = Shop(config)
    at_ms = shop.machine.now_ms
    for number, (after_ms, who, slo_ms, drawn) in enumerate(arrivals):
        at_ms += after_ms
        shop.until(at_ms)
        is_mute = drawn == "mute" and not config.has_throttler
        block = "label" if is_mute else drawn
        headers = {"number": str(number)}
        if block is None:
            spec = JobSpec(tenant=f"t{who}", priority=number % 3)
        else:
            headers["block"] = block
            spec = blocked_spec(block, f"t{who}")
        if block is None or has_blocked:
            spec = msgspec.structs.replace(spec, slo_ms=slo_ms, headers=headers)
            shop.step(Enqueue("q", [spec]))
        else:
            shop.step()
    shop.until(None)
    return shop.found


@pytest.mark.parametrize("order", [Order.FAIR, Order.TIME, Order.PRIORITY])
@pytest.mark.parametrize("has_throttler", [False, True])
@settings(max_examples=40, deadline=None, derandomize=True)
@given(arrivals=ARRIVALS)
def test_blocked_strands_delay_nobody(
    arrivals: list[Arrival], order: Order, has_throttler: bool
) -> None:
    """Free jobs start when and in the order they would if the others were not there."""
    if has_throttler and order is not Order.FAIR:
        # One turn per strand: a job that waits for its verdict is its head.
        arrivals = [one for one in arrivals if one[3] != "mute"]
    config = changed(FAIR, order=order, has_throttler=has_throttler)
    alone = starts_of(arrivals, config, has_blocked=False)
    assert starts_of(arrivals, config, has_blocked=True) == alone
    assert len(alone) == sum(block is None for _, _, _, block in arrivals)


RULES: list[tuple[str, list[Command], list[Command], JobSpec]] = [
    (
        "tenant paused",
        [SetTenant("q", "a", is_paused=True)],
        [SetTenant("q", "a", is_paused=False)],
        JobSpec(tenant="a"),
    ),
    (
        "tenant capped",
        [SetTenant("q", "a", cap=1)],
        [SetTenant("q", "a", cap=-1)],
        JobSpec(tenant="a"),
    ),
    (
        "kind paused",
        [SetKind("q", "k", is_paused=True)],
        [SetKind("q", "k", is_paused=False)],
        JobSpec(kind="k"),
    ),
    (
        "kind capped",
        [SetKind("q", "k", cap=1)],
        [SetKind("q", "k", cap=-1)],
        JobSpec(kind="k"),
    ),
    (
        "limit by label",
        [Configure(QueueConfig(name="q", limits=(Concurrency("c", 1, "x"),)))],
        [Configure(QueueConfig(name="q"))],
        JobSpec(labels={"x": "1"}),
    ),
    (
        "limit by tenant",
        [Configure(QueueConfig(name="q", limits=(Concurrency("c", 1, "tenant"),)))],
        [Configure(QueueConfig(name="q"))],
        JobSpec(tenant="a"),
    ),
    (
        "shares",
        [Configure(QueueConfig(name="q", limits=(Shares("s", 10, "x", {"1": 10}),)))],
        [Configure(QueueConfig(name="q"))],
        JobSpec(labels={"x": "1"}),
    ),
    (
        "window",
        [Configure(QueueConfig(name="q", windows=EVENING))],
        [Configure(QueueConfig(name="q"))],
        JobSpec(),
    ),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule[0])
def test_a_rule_added_under_a_backlog_takes_hold_and_is_lifted(
    rule: tuple[str, list[Command], list[Command], JobSpec],
) -> None:
    """Invariants 22 and 26: one job runs already, and it counts."""
    name, added, lifted, spec = rule
    machine = Machine(QueueConfig(name="q"))
    machine.put("q", *[spec] * 5)
    free = [JobSpec(tenant=x, kind=x, labels={"x": x}) for x in ("one", "two")]
    other = machine.put("q", *free)
    (running,) = machine.lease()
    machine.decide(*added)
    assert machine.starts() == ([] if name == "window" else other)
    machine.decide(*added)
    assert machine.starts() == []
    machine.ask(Ack([running.token]))
    is_counted = "paused" not in name and name != "window"
    assert len(machine.starts()) == is_counted
    machine.decide(*lifted)
    assert len(machine.starts()) == (4 if not is_counted else 3) + 2 * (
        name == "window"
    )


@pytest.mark.parametrize("is_kind", [False, True])
def test_what_is_unpaused_does_not_take_the_lane_over(is_kind: bool) -> None:
    """Invariants 13 and 23: no credit is given for the time of a pause."""
    machine = Machine(QueueConfig(name="q"))
    for tenant in ("a", "b"):
        machine.put("q", *specs(400, tenant=tenant, kind=tenant))
    machine.run(20)
    pause = (
        SetKind("q", "a", is_paused=True)
        if is_kind
        else SetTenant("q", "a", is_paused=True)
    )
    resume = (
        SetKind("q", "a", is_paused=False)
        if is_kind
        else SetTenant("q", "a", is_paused=False)
    )
    machine.ask(pause)
    assert {job.spec.tenant for job in machine.run(100)} == {"b"}
    machine.ask(resume)
    tenants = [job.spec.tenant for job in machine.run(100)]
    for start in range(0, 100, 10):
        assert 4 <= tenants[start : start + 10].count("a") <= 6
