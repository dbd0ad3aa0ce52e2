"""Headway: a durable job queue that keeps its promises.

`headway.App` is what an application has: handlers, their jobs, and workers for them.
`headway.open("jobs.db")` gives it the whole queue in its own process, verb by verb;
`headway.open_async` is the same for asyncio. Names are imported when they are used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headway import compiled

if TYPE_CHECKING:
    from headway.client.errors import Unreachable
    from headway.core.config import Concurrency, QueueConfig, Rate, Shares
    from headway.core.cron import Schedule
    from headway.core.errors import RuleBroken
    from headway.core.retry import Delays, Exponential, Fixed, GiveUp
    from headway.core.windows import Window, WindowSet
    from headway.runtime.embedded import (
        AsyncHeadway,
        Headway,
        open,  # noqa: A004 headway.open is its name
        open_async,
    )
    from headway.runtime.errors import OwnerStopped
    from headway.runtime.verbs import spec
    from headway.runtime.views import LeasedJob
    from headway.worker.app import App
    from headway.worker.outcomes import Bury, Retry, current_job, wait_for

compiled.use()

_PLACES = {
    "client.errors": ("Unreachable",),
    "core.config": ("Concurrency", "QueueConfig", "Rate", "Shares"),
    "core.cron": ("Schedule",),
    "core.errors": ("RuleBroken",),
    "core.retry": ("Delays", "Exponential", "Fixed", "GiveUp"),
    "core.windows": ("Window", "WindowSet"),
    "runtime.embedded": ("AsyncHeadway", "Headway", "open", "open_async"),
    "runtime.errors": ("OwnerStopped",),
    "runtime.verbs": ("spec",),
    "runtime.views": ("LeasedJob",),
    "worker.app": ("App",),
    "worker.outcomes": ("Bury", "Retry", "current_job", "wait_for"),
}
_FOUND = {name: place for place, names in _PLACES.items() for name in names}

__all__ = [
    "App",
    "AsyncHeadway",
    "Bury",
    "Concurrency",
    "Delays",
    "Exponential",
    "Fixed",
    "GiveUp",
    "Headway",
    "LeasedJob",
    "OwnerStopped",
    "QueueConfig",
    "Rate",
    "Retry",
    "RuleBroken",
    "Schedule",
    "Shares",
    "Unreachable",
    "Window",
    "WindowSet",
    "current_job",
    "open",
    "open_async",
    "spec",
    "wait_for",
]


def __getattr__(name: str) -> Any:
    place = _FOUND.get(name)
    if place is None:
        raise AttributeError(f"module 'headway' has no attribute {name!r}")
    value = getattr(import_module(f"headway.{place}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
