"""The cases of `core_scale`: what stands ready, what arrives, by which rules."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from headway.core.commands import Command, SetTenant
from headway.core.config import Concurrency, QueueConfig, Rate, Shares
from headway.core.spec import JobSpec
from headway.core.windows import Window, WindowSet

PAYLOAD = b"x" * 200
ONE = "the-only-tenant"

MakeSpec = Callable[[int, int], JobSpec]
"""From the value (which tenant, strand or lane) and a number of its own."""


@dataclass(frozen=True, slots=True)
class Case:
    """What stands ready, and what arrives."""

    name: str
    queues: Sequence[QueueConfig]
    spec: MakeSpec
    values: int = 1
    """Tenants, strands or lanes; dealt out to the queues in equal parts."""
    backlog: int = 1_000
    """Jobs that stand ready, the same number for each value."""
    is_full: bool = False
    """Every value runs as much as its limit lets it: each start wakes a parked one."""
    room: int = 0
    """How much that is, over all values, if it is not one for each."""
    late_ms: int = 0
    """How long the backlog has stood when measuring begins."""
    rules: Sequence[Command] = ()
    """What an operator said before the first job came."""
    is_fair: bool = True
    """Whether tenants are told apart, which a partition always does but for comparison."""


def of_tenant(value: int, _: int) -> JobSpec:
    return JobSpec(tenant=f"tenant-{value}", payload=PAYLOAD)


def of_server(value: int, _: int) -> JobSpec:
    labels = {"server": f"server-{value}"}
    return JobSpec(tenant=ONE, payload=PAYLOAD, labels=labels)


def of_lane(value: int, _: int) -> JobSpec:
    return JobSpec(tenant=ONE, payload=PAYLOAD, slo_ms=SLOS_MS[value % 16])


def bare(_: int, __: int) -> JobSpec:
    return JobSpec(payload=PAYLOAD)


def keyed(value: int, number: int) -> JobSpec:
    return JobSpec(
        tenant=f"tenant-{value}", payload=PAYLOAD, idempotency_key=f"key-{number}"
    )


def labelled(value: int, number: int) -> JobSpec:
    return JobSpec(
        kind=f"kind-{number % 3}",
        tenant=f"tenant-{value}",
        payload=PAYLOAD,
        priority=number % 5,
        labels={"region": REGIONS[number % 3], "server": f"server-{number % 10}"},
    )


SLOS_MS = tuple(30_000 + 20 * number for number in range(16))
"""Close to each other, so that all lanes are visited and not only the shortest."""
REGIONS = ("east", "north", "west")
PLAIN = QueueConfig(name="plain")
CAPPED = QueueConfig(name="capped", limits=(Concurrency("each", 1, per="tenant"),))
WIDE = QueueConfig(name="wide", limits=(Concurrency("server", 10, per="server"),))
NARROW = QueueConfig(name="narrow", limits=(Concurrency("server", 1, per="server"),))
FULL = 1_000
"""Jobs that run where there is one capped tenant, or one strand with a limit."""
ROOMY_CAP = QueueConfig(name="cap", limits=(Concurrency("each", FULL, per="tenant"),))
ROOMY = QueueConfig(name="roomy", limits=(Concurrency("server", FULL, per="server"),))
LANES = [QueueConfig(name=f"queue-{n}", slos_ms=SLOS_MS) for n in range(625)]
WINDOWS = WindowSet((Window.parse("22:00-21:00", "Europe/Berlin"),))
LIMITS = (
    Concurrency("all", 10_000),
    Rate("starts", 1_000_000, 1_000),
    Concurrency("tenant", 1_000, per="tenant"),
)
LABEL_LIMITS = (
    *LIMITS,
    Concurrency("server", 1_000, per="server"),
    Shares("regions", 10_000, "region", {"east": 40, "north": 30, "west": 30}),
)
FEATURED = QueueConfig(name="featured", windows=WINDOWS, limits=LIMITS)
LABELLED = QueueConfig(name="labelled", windows=WINDOWS, limits=LABEL_LIMITS)


def weights(queue: str) -> list[Command]:
    """Weights of 1 to 4 for a thousand tenants."""
    return [
        SetTenant(queue, f"tenant-{number}", weight=1.0 + number % 4)
        for number in range(1_000)
    ]


BASE = Case("1 tenant, 1 strand, 1 lane", [PLAIN], of_tenant)
# The same rules at a number of one: what a cap costs at all is told apart from what
# many of them cost.
ONE_CAPPED = Case("1 capped tenant", [ROOMY_CAP], of_tenant, is_full=True, room=FULL)
ONE_WIDE = Case("1 strand", [ROOMY], of_server)
ONE_NARROW = Case("1 strand at its limit", [ROOMY], of_server, is_full=True, room=FULL)
OFF = Case(
    "the same jobs, all features off",
    [PLAIN],
    of_tenant,
    1_000,
    10_000,
    is_fair=False,
)
BARE = Case("jobs of no tenant, all features off", [PLAIN], bare, backlog=10_000)
FEATURES = Case(
    "limits, windows, fairness on",
    [FEATURED],
    of_tenant,
    1_000,
    10_000,
    rules=weights("featured"),
)

CASES: dict[str, tuple[Case, Case, float | None]] = {
    "tenants-1k": (
        Case("1,000 tenants", [PLAIN], of_tenant, 1_000, 10_000),
        BASE,
        2.0,
    ),
    "tenants-100k": (
        Case("100,000 tenants", [PLAIN], of_tenant, 100_000, 100_000),
        BASE,
        2.0,
    ),
    "tenants-1m": (
        Case("1,000,000 tenants", [PLAIN], of_tenant, 1_000_000, 1_000_000),
        BASE,
        2.0,
    ),
    "tenants-1m-late": (
        Case(
            "1,000,000 tenants, all late",
            [PLAIN],
            of_tenant,
            1_000_000,
            1_000_000,
            late_ms=60_000,
        ),
        BASE,
        None,
    ),
    "capped-1m": (
        Case(
            "1,000,000 capped tenants",
            [CAPPED],
            of_tenant,
            1_000_000,
            1_000_000,
            is_full=True,
        ),
        ONE_CAPPED,
        2.0,
    ),
    "strands-100k": (
        Case("100,000 strands", [WIDE], of_server, 100_000, 100_000),
        ONE_WIDE,
        2.0,
    ),
    "strands-100k-full": (
        Case(
            "100,000 strands, all at their limit",
            [NARROW],
            of_server,
            100_000,
            100_000,
            is_full=True,
        ),
        ONE_NARROW,
        2.0,
    ),
    "capped-1": (ONE_CAPPED, BASE, None),
    "strands-1": (ONE_WIDE, BASE, None),
    "strands-1-full": (ONE_NARROW, BASE, None),
    "lanes-10k": (Case("10,000 lanes", LANES, of_lane, 10_000, 10_000), BASE, 2.0),
    "lanes-10k-late": (
        Case(
            "10,000 lanes, all late", LANES, of_lane, 10_000, 1_000_000, late_ms=60_000
        ),
        BASE,
        None,
    ),
    "backlog-1m": (
        Case("1,000,000 jobs in one turn", [PLAIN], of_tenant, 1, 1_000_000),
        Case("1 job in one turn", [PLAIN], of_tenant, 1, 1),
        2.0,
    ),
    # Limits: concurrency of the queue, a rate, a cap for each tenant. A window that
    # is open. Fairness between 1,000 tenants of four weights. Off: none of these.
    "features": (FEATURES, OFF, 1.5),
    # Beside jobs that name no tenant, of whom nobody could ask for fairness.
    "features-bare": (
        replace(FEATURES, name="the same, beside jobs of no tenant"),
        BARE,
        None,
    ),
    # The same, and each job has an idempotency key.
    "features-keys": (
        Case(
            "the same, with idempotency keys",
            [FEATURED],
            keyed,
            1_000,
            10_000,
            rules=weights("featured"),
        ),
        OFF,
        None,
    ),
    # The same limits, one more for each of 10 servers, shares for 3 regions; and jobs
    # of five priorities and three kinds.
    "features-30-strands": (
        Case(
            "the same, with limits by label: 30 strands",
            [LABELLED],
            labelled,
            1_000,
            10_000,
            rules=weights("labelled"),
        ),
        OFF,
        None,
    ),
}
"""By key: the case, its peer, and the greatest ratio that is good enough."""
