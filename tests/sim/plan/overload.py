"""An overload: three lanes, two of which can't be kept, and tenants of two weights."""

from headway.core.config import Concurrency, QueueConfig
from headway.core.retry import Fixed
from headway.sim.scenario import (
    Burst,
    Load,
    ManyTenants,
    OneTenant,
    Poisson,
    Replies,
    Scenario,
    Service,
    Spread,
    Workers,
)


def overload(
    *, workers: tuple[Workers, ...] = (Workers(slots=8),), seconds: int = 60
) -> Scenario:
    """Work for some ten slots, with failures and replies."""
    return Scenario(
        name="overload",
        duration_ms=seconds * 1_000,
        workers=workers,
        queues=(
            QueueConfig(name="payment", slo_ms=1_000, retry=Fixed(500)),
            QueueConfig(
                name="mail", slo_ms=5_000, limits=(Concurrency("partner", 40),)
            ),
            QueueConfig(name="report", slo_ms=20_000),
        ),
        loads=(
            Load(
                name="payment",
                queue="payment",
                kind="charge",
                tenants=ManyTenants(count=5, prefix="shop-", weights=(1, 2)),
                arrivals=Poisson(per_second=10),
                service=Service(kind=Spread.EXPONENTIAL, mean_ms=200),
                fail=0.05,
            ),
            Load(
                name="mail",
                queue="mail",
                kind="send",
                tenants=ManyTenants(count=20, prefix="shop-", zipf=1.0),
                arrivals=Poisson(per_second=20),
                service=Service(kind=Spread.LOGNORMAL, mean_ms=250, sigma=0.8),
                replies=Replies(
                    share=0.2, after=Service(mean_ms=300), timeout_ms=60_000
                ),
            ),
            Load(
                name="report",
                queue="report",
                kind="print",
                tenants=OneTenant(name="office"),
                arrivals=Burst(count=15, every_ms=10_000, at_ms=5_000),
                service=Service(kind=Spread.UNIFORM, mean_ms=1_000),
                hang=0.02,
            ),
        ),
    )
