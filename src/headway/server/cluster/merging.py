"""Answers of several partitions as one."""

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any, Final

import msgspec

from headway.server.call import NOTHING, answer
from headway.server.cluster import exposition, wide_shapes
from headway.server.cluster.errand import Errand, Unreached
from headway.server.cluster.pages import merged
from headway.server.http.message import Response
from headway.wire import history, live, operations, queues, search, work

Parts = list[tuple[str, Any]]
"""What each partition has said, in the order of their names."""
LIMIT: Final = 100
LABELLED: Final = ("capacity_metrics", "operations_list_operations")
"""Say of what partition something is, even if there is only one."""
RANKED_MAX: Final = 200
"""The longest page of a ranking that one partition gives."""


def merge(errand: Errand, got: Sequence[tuple[str, Response]]) -> Response:
    """One answer out of all. The first that is none of what it should be is told."""
    for _, response in got:
        if response.status >= 300:
            return response
    operation = errand.route.operation
    if operation == "capacity_metrics":
        return exposition.merged(got)
    if operation == "history_forget":
        return NOTHING
    parts: Parts = []
    for partition, response in got:
        kind = errand.route.answers[response.status]
        try:
            parts.append((partition, msgspec.json.decode(response.body, type=kind)))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            text = f"what partition {partition} answered can't be read"
            raise Unreached(text, is_unknown=True) from error
    value = _MERGERS[operation](errand, parts)
    return answer(value, max(response.status for _, response in got))


def limit_of(errand: Errand, default: int = LIMIT) -> int:
    """How many rows are asked for; a partition has refused what is none."""
    given = dict(errand.request.query()).get("limit")
    return int(given) if given is not None else default


def _queue_page(errand: Errand, parts: Parts) -> queues.QueuePage:
    pages = [(part.queues, part.next) for _, part in parts]
    rows, end = merged(
        pages, lambda one: one.name, limit_of(errand), wide_shapes.folded_brief
    )
    return queues.QueuePage(rows, end)


def _ranking(errand: Errand, parts: Parts) -> live.Ranking:
    query = dict(errand.request.query())
    sort = query.get("sort", "trouble")
    rows: dict[str, live.RankedQueue] = {}
    folded = 0
    for _, part in parts:
        for row in part.queues:
            known = rows.get(row.name)
            folded += known is not None
            rows[row.name] = (
                row if known is None else wide_shapes.folded_ranked(known, row)
            )
    order = sorted(rows.values(), key=lambda row: _rank(row, sort))
    skip = int(query.get("skip", 0))
    total = sum(part.total for _, part in parts) - folded
    return live.Ranking(order[skip : skip + limit_of(errand, 50)], total)


def _rank(row: live.RankedQueue, sort: str) -> tuple[Any, ...]:
    if sort == "name":
        return (row.name,)
    if sort == "trouble":
        ready = row.counts.ready
        is_held = row.is_paused or row.is_blocked
        trouble = 2 if ready and row.due else 1 if ready and is_held else 0
        return (-trouble, -ready, row.name)
    return (-getattr(row.counts, sort), row.name)


def _workers(errand: Errand, parts: Parts) -> live.BusyWorkers:
    def fold(one: live.BusyWorker, other: live.BusyWorker) -> live.BusyWorker:
        older = one if one.oldest_ms <= other.oldest_ms else other
        ends_ms = min(one.lease_until_ms, other.lease_until_ms)
        jobs = one.jobs + other.jobs
        return live.BusyWorker(one.worker, jobs, older.oldest, older.oldest_ms, ends_ms)

    pages = [(part.workers, part.next) for _, part in parts]
    rows, end = merged(pages, lambda one: one.worker, limit_of(errand), fold)
    # A worker with jobs of several partitions is counted in each of them.
    total = max([len(rows), *(part.total for _, part in parts)])
    if all(part.next is None for _, part in parts) and end is None:
        total = len(rows)
    return live.BusyWorkers(rows, end, total)


def _schedules(errand: Errand, parts: Parts) -> operations.SchedulePage:
    pages = [
        (part.schedules, None if part.next is None else _schedule_key(part.next))
        for _, part in parts
    ]
    rows, end = merged(pages, lambda one: (one.queue, one.name), limit_of(errand))
    return operations.SchedulePage(rows, None if end is None else "/".join(end))


def _schedule_key(text: str) -> tuple[str, str]:
    queue, _, name = text.partition("/")
    return queue, name


def _operations(_: Errand, parts: Parts) -> operations.Operations:
    found = []
    for partition, part in parts:
        for one in part.operations:
            one.partition = partition
            found.append(one)
    found.sort(key=lambda one: -one.started_ms)
    return operations.Operations(found)


def _autoscale(errand: Errand, parts: Parts) -> operations.WorkersWanted:
    concurrency = int(dict(errand.request.query()).get("concurrency", 1))
    wanted = [part for _, part in parts]
    slots = sum(part.slots for part in wanted)
    most = [part.slots_max for part in wanted]
    return operations.WorkersWanted(
        ceil(slots / concurrency),
        slots,
        max(wanted, key=lambda part: part.slots).reason,
        sum(part.load for part in wanted),
        None if None in most else sum(most),
        [lane for part in wanted for lane in part.lanes],
    )


def _histories(_: Errand, parts: Parts) -> history.Histories:
    return history.Histories([one for _, part in parts for one in part.partitions])


def _fate(_: Errand, parts: Parts) -> work.ReplyFate:
    """One partition has the job that waits; the others know nothing of it."""
    fates = {part.fate for _, part in parts}
    for fate in ("resolved", "repeated", "late"):
        if fate in fates:
            return work.ReplyFate(fate)
    return work.ReplyFate(parts[0][1].fate)


def _queue_use(_errand: Errand, parts: Parts) -> search.QueueUse:
    lanes: dict[int, search.LaneCounts] = {}
    for _, part in parts:
        for lane in part.lanes:
            known = lanes.setdefault(lane.slo_ms, search.LaneCounts(lane.slo_ms, {}))
            known.states = wide_shapes.summed(known.states, lane.states)
    to, at_ms = _indexed(parts)
    return search.QueueUse([lanes[slo_ms] for slo_ms in sorted(lanes)], to, at_ms)


def _tenant_use(errand: Errand, parts: Parts) -> search.TenantUse:
    def fold(one: search.TenantCounts, other: search.TenantCounts) -> Any:
        states = wide_shapes.summed(one.states, other.states)
        return search.TenantCounts(one.tenant, states)

    pages = [(part.tenants, part.next) for _, part in parts]
    rows, end = merged(pages, lambda one: one.tenant, limit_of(errand), fold)
    return search.TenantUse(rows, end, *_indexed(parts))


def _indexed(parts: Parts) -> tuple[int, int]:
    """Events have numbers of their own in each partition: that of the slowest."""
    slowest = min((part for _, part in parts), key=lambda part: part.indexed_ms)
    return slowest.indexed_to, slowest.indexed_ms


def _dead_groups(_: Errand, parts: Parts) -> search.DeadGroups:
    groups = [one for _, part in parts for one in part.groups]
    groups.sort(key=lambda one: -one.count)
    return search.DeadGroups(groups)


def _preview(_: Errand, parts: Parts) -> Any:
    """A preview in all; or the operation at the home, beside which others run."""
    first = parts[0][1]
    if isinstance(first, operations.Operation):
        first.partition = parts[0][0]
        return first
    sample = [job for _, part in parts for job in part.sample]
    return operations.Preview(
        sum(part.matched for _, part in parts),
        any(part.is_more for _, part in parts),
        sample[: max(len(part.sample) for _, part in parts)],
    )


_MERGERS: Final[dict[str, Callable[[Errand, Parts], Any]]] = {
    "queues_list_queues": _queue_page,
    "ranking_queues": _ranking,
    "ranking_workers": _workers,
    "schedules_list_all": _schedules,
    "operations_list_operations": _operations,
    "capacity_autoscale": _autoscale,
    "history_about": _histories,
    "work_reply": _fate,
    "callbacks_take": _fate,
    "callbacks_take_at_key": _fate,
    "search_counts": _queue_use,
    "search_tenant_counts": _tenant_use,
    "search_dead_groups": _dead_groups,
    "queues_show": wide_shapes.queue_shown,
    "queues_put": wide_shapes.queue_shown,
    "queues_patch": wide_shapes.queue_shown,
    "queues_pause": wide_shapes.holds,
    "queues_resume": wide_shapes.holds,
    "queues_block": wide_shapes.holds,
    "queues_unblock": wide_shapes.holds,
    "queues_list_tenants": wide_shapes.tenant_page,
    "queues_list_kinds": wide_shapes.kind_page,
    "queues_set_tenant": lambda _, parts: parts[0][1],
    "queues_set_kind": lambda _, parts: parts[0][1],
    "ranking_busy_tenants": wide_shapes.busy_tenants,
    "dead_redrive": _preview,
    "dead_discard": _preview,
    "dead_purge": _preview,
}
"""By the operation of a route."""
