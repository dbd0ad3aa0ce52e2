"""Bulk operations, one step of the owner at a time."""

from headway.core import bulk as bulk_records
from headway.core.bulk import BulkState, BulkVerb, BulkView, Filter
from headway.core.commands import (
    StartBulk,
)
from tests.runtime.desk import Desk

PURGE, REDRIVE, DISCARD = BulkVerb.PURGE, BulkVerb.REDRIVE, BulkVerb.DISCARD
HOUR_MS = 3_600_000


def start(desk: Desk, verb: BulkVerb, which: Filter | None = None) -> BulkView:
    """The answer comes with the step that writes it down, and no later."""
    ask = StartBulk("q", verb, which or Filter())
    ((asked, view),) = desk.owner.step([ask], desk.now_ms)
    assert asked is ask
    assert isinstance(view, BulkView)
    return view


def now(desk: Desk, number: int) -> BulkView:
    """As it stands, without a step of the owner."""
    return bulk_records.view_of(desk.owner.partition.book.bulks[number])


def finish(desk: Desk, number: int) -> BulkView:
    """Steps only when the owner asks for one."""
    for _ in range(10_000):
        at_ms = desk.owner.next_ms()
        if now(desk, number).state is not BulkState.RUNNING:
            return now(desk, number)
        assert at_ms is not None
        desk.now_ms = max(desk.now_ms, at_ms)
        desk.owner.step([], desk.now_ms)
    raise AssertionError("it does not end")


def fill(desk: Desk) -> None:
    """A backlog of every sort: lanes, tenants, priorities, and what is scheduled."""
    for tenant in ("a", "b", "c"):
        for slo_ms in (1_000, 60_000):
            desk.put(150, tenant=tenant, slo_ms=slo_ms)
        desk.put(100, tenant=tenant, priority=7)
        desk.put(60, tenant=tenant, delay_ms=HOUR_MS)
        desk.put(40, tenant=tenant, is_critical=True)
