"""What an operator asks of a queue, once for all ways of asking (see `verbs`)."""

from collections.abc import Iterable
from typing import TypedDict, Unpack

from headway.core.bulk import BulkVerb, BulkView, Filter
from headway.core.commands import StartBulk, StopBulk
from headway.core.errors import BadValue
from headway.runtime.bulk import BulkPreview, ListBulks
from headway.runtime.listing import (
    DeadList,
    JobList,
    KindList,
    ListDead,
    ListKinds,
    ListQueues,
    ListRunning,
    ListSchedules,
    ListTenants,
    QueueList,
    QueueView,
    ScheduleList,
    ShowQueue,
    TenantList,
)
from headway.runtime.verbs import Request, itself


class FilterFields(TypedDict, total=False):
    """Which jobs are meant: all that is said must hold. A purge knows only tenants."""

    tenant: str
    kind: str
    reason: str
    text: str
    died_after_ms: int
    died_before_ms: int
    seqs: Iterable[int]


def queues(after: str = "", limit: int = 100) -> Request[QueueList]:
    """All queues by name: their rules and counts."""
    return Request(ListQueues(after, limit), itself)


def queue(name: str) -> Request[QueueView]:
    """One queue, with its lanes and what is in use of its limits."""
    return Request(ShowQueue(name), itself)


def tenants(
    queue: str, after: str | None = None, limit: int = 100
) -> Request[TenantList]:
    """Tenants that have a weight, a pause or a cap of their own."""
    return Request(ListTenants(queue, after, limit), itself)


def kinds(queue: str, after: str | None = None, limit: int = 100) -> Request[KindList]:
    """Kinds that have a cost, a pause or a cap of their own."""
    return Request(ListKinds(queue, after, limit), itself)


def schedules(
    queue: str | None = None,
    after: tuple[str, str] | None = None,
    limit: int = 100,
) -> Request[ScheduleList]:
    """Schedules, of one queue or of all, with their last and next ticks."""
    return Request(ListSchedules(queue, after, limit), itself)


def dead(
    queue: str,
    *,
    after: str = "",
    limit: int = 100,
    **which: Unpack[FilterFields],
) -> Request[DeadList]:
    """Dead letters in the order of their death.

    A page may be short, or empty, with more behind it: go on while there is a `next`.
    """
    return Request(ListDead(queue, _filter(which), after, limit), itself)


def running(
    queue: str | None = None, after: int = 0, limit: int = 100
) -> Request[JobList]:
    """Jobs that are leased, or wait for a reply."""
    return Request(ListRunning(queue, after, limit), itself)


def start_bulk(
    verb: str,
    queue: str,
    *,
    rate_per_s: float | None = None,
    **which: Unpack[FilterFields],
) -> Request[BulkView]:
    """Purges, redrives or discards many jobs; returns when that is written down.

    It goes on by itself, over restarts, beside everything else. A purge takes what is
    in the queue now, and a redrive or discard what has died by now.
    """
    return Request(StartBulk(queue, _verb(verb), _filter(which), rate_per_s), itself)


def preview_bulk(
    verb: str, queue: str, **which: Unpack[FilterFields]
) -> Request[BulkPreview]:
    """How many jobs it would meet, and some of them; nothing changes."""
    ask = StartBulk(queue, _verb(verb), _filter(which), is_preview=True)
    return Request(ask, itself)


def stop_bulk(id: int) -> Request[BulkView]:  # noqa: A002 as the view calls it
    """What was done stays done."""
    return Request(StopBulk(id), itself)


def bulks() -> Request[list[BulkView]]:
    """Those that run and the newest that have ended, newest first."""
    return Request(ListBulks(), lambda got: list(got.bulks))


def _verb(name: str) -> BulkVerb:
    try:
        return BulkVerb(name)
    except ValueError:
        raise BadValue("verb", name, "must be purge, redrive or discard") from None


def _filter(which: FilterFields) -> Filter:
    fields = dict(which)
    if "seqs" in which:
        fields["seqs"] = tuple(which["seqs"])
    return Filter(**fields)  # type: ignore[arg-type]
