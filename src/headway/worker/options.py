"""What may be said of a handler's jobs, and how it becomes a spec."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, Literal, TypedDict

from headway.core import retry as core_retry
from headway.core.durations import parse_ms
from headway.core.errors import BadValue
from headway.core.windows import Window, WindowSet
from headway.worker.outcomes import Duration, RetryOption

Tenant = str | Callable[..., str]
"""A name, or how it is found from the arguments of the call."""
Windows = str | Window | WindowSet | list[str | Window]
"""Such as "22:00-06:00" or "22:00-06:00 Europe/Berlin"."""


class AnyOptions(TypedDict, total=False):
    """What may be said of one job, or of all jobs of a handler."""

    slo: Duration
    delay: Duration
    tenant: Tenant
    weight: float
    priority: int
    cost: int
    critical: bool
    labels: dict[str, str]
    windows: Windows
    timeout: Duration
    """How long one attempt may take, waiting for a reply included."""
    lifetime: Duration
    attempts: int
    headers: dict[str, str]
    result: Duration
    """How long what the handler returns is kept; without it nothing is."""


class EnqueueOptions(AnyOptions, total=False):
    """What may be said of one job."""

    run_at: datetime | int
    """With its zone; or milliseconds since 1970."""
    key: str | Callable[..., str]
    """Idempotency key, or how it is found from the arguments of the call: the same key
    and arguments are one job. `enqueue_many` numbers its jobs behind a name."""


class JobOptions(AnyOptions, total=False):
    """What may be said of all jobs of a handler."""

    queue: str
    kind: str
    retry: RetryOption
    """A strategy that is sent with the job, or logic that runs in the worker."""
    isolate: Literal["process"] | None
    """Runs each attempt in a process of its own, which can be killed."""


TIMEOUT_SLACK_MS: Final = 5_000
"""The queue allows an attempt so much more than its worker does, which then comes first:
it can stop the handler, ask the retry logic and tell what happened."""
_DURATIONS: Final = ("slo", "delay", "timeout", "lifetime", "result")
_SAME: Final = ("weight", "priority", "cost", "labels", "headers")
_OTHER: Final = {
    "critical": "is_critical",
    "attempts": "attempts_max",
    "key": "idempotency_key",
}
_OF_HANDLERS: Final = {"queue", "kind", "retry", "isolate", "tenant"}
_KNOWN: Final = {*_DURATIONS, *_SAME, *_OTHER, *_OF_HANDLERS, "run_at", "windows"}


def spec_fields(options: dict[str, Any]) -> dict[str, Any]:
    """Fields of a JobSpec; tenant and retry aside, which may be logic."""
    unknown = options.keys() - _KNOWN
    if unknown:
        raise BadValue("options", sorted(unknown), "nobody knows what that means")
    fields: dict[str, Any] = {}
    for name, value in options.items():
        if name in _DURATIONS:
            slack_ms = TIMEOUT_SLACK_MS if name == "timeout" else 0
            fields[f"{name}_ms"] = parse_ms(value, name) + slack_ms
        elif name in _SAME:
            fields[name] = value
        elif name in _OTHER:
            if not callable(value):
                fields[_OTHER[name]] = value
        elif name == "run_at":
            fields["run_at_ms"] = _moment_ms(value)
        elif name == "windows":
            fields["windows"] = window_set(value)
        elif name == "retry" and isinstance(value, core_retry.Retry):
            fields["retry"] = value
    return fields


def window_set(windows: Windows) -> WindowSet:
    match windows:
        case WindowSet():
            return windows
        case list():
            return WindowSet(tuple(_window(one) for one in windows))
        case _:
            return WindowSet((_window(windows),))


def _window(window: str | Window) -> Window:
    if isinstance(window, Window):
        return window
    span, _, zone = window.partition(" ")
    return Window.parse(span, zone.strip() or "UTC")


def _moment_ms(moment: datetime | int) -> int:
    if isinstance(moment, int):
        return moment
    if moment.tzinfo is None:
        raise BadValue("run_at", str(moment), "has no time zone")
    return max(0, round(moment.timestamp() * 1_000))
