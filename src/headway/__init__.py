"""Headway: a durable job queue that keeps its promises.

`headway.open("jobs.db")` gives an application the whole queue in its own process;
`headway.open_async` is the same for asyncio.
"""

from headway.core.config import Concurrency, Order, QueueConfig, Rate, Shares
from headway.core.cron import Schedule
from headway.core.errors import RuleBroken
from headway.core.job import JobSpec
from headway.core.retry import Delays, Exponential, Fixed, GiveUp
from headway.core.windows import Window, WindowSet
from headway.runtime.embedded import (
    AsyncHeadway,
    Headway,
    open,  # noqa: A004 headway.open is its name
    open_async,
)
from headway.runtime.errors import OwnerBusy, OwnerStopped
from headway.runtime.verbs import spec
from headway.runtime.views import JobView, LeasedJob

__all__ = [
    "AsyncHeadway",
    "Concurrency",
    "Delays",
    "Exponential",
    "Fixed",
    "GiveUp",
    "Headway",
    "JobSpec",
    "JobView",
    "LeasedJob",
    "Order",
    "OwnerBusy",
    "OwnerStopped",
    "QueueConfig",
    "Rate",
    "RuleBroken",
    "Schedule",
    "Shares",
    "Window",
    "WindowSet",
    "open",
    "open_async",
    "spec",
]
