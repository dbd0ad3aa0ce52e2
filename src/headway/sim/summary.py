"""From noted starts to figures: lanes, loads and tenants of a run."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from headway.core.durations import format_ms
from headway.sim.result import GroupResult, LaneResult, Series, WaitTimes
from headway.sim.scenario import Scenario

TENANTS_SHOWN: Final = 1_000
BINS_MAX: Final = 1_000


Key = tuple[str, int, str, int]
"""Jobs that are counted alike: queue, SLO in ms, tenant, index of the load."""


def _column() -> "array[int]":
    return array("q")


class Row(msgspec.Struct, eq=False):
    """The jobs of one key, in the order of their starts."""

    queue: str
    slo_ms: int
    tenant: str
    load: int
    waits_ms: "array[int]" = msgspec.field(default_factory=_column)
    ats_ms: "array[int]" = msgspec.field(default_factory=_column)
    overdue_ms: "array[int]" = msgspec.field(default_factory=_column)
    """How long those past due had waited that never started."""
    unstarted: int = 0
    first: int = 0
    """The place of its first start among those of its lane, from 1; 0: none."""


class Bins(NamedTuple):
    """The time axis of the series."""

    epoch_ms: int
    size_ms: int
    places: int


def bins_of(scenario: Scenario, ended_ms: int) -> Bins:
    """As the scenario says, or a multiple of it where the run went on for long."""
    sample_ms = scenario.bin_ms
    times = ended_ms // (sample_ms * BINS_MAX) + 1
    size_ms = sample_ms * times
    return Bins(scenario.epoch_ms, size_ms, ended_ms // size_ms + 1)


def merged(values: list[int], scenario: Scenario, bins: Bins) -> list[int]:
    """Sums by sample as sums by bin."""
    times = bins.size_ms // scenario.bin_ms
    return [
        sum(values[start : start + times])
        for start in range(0, bins.places * times, times)
    ]


def slots_over_time(scenario: Scenario, bins: Bins) -> list[float]:
    """The mean number of slots in each bin."""
    slots = [0.0] * bins.places
    for workers in scenario.workers:
        for place in range(bins.places):
            start_ms = place * bins.size_ms
            end_ms = start_ms + bins.size_ms
            if workers.until_ms is not None:
                end_ms = min(end_ms, workers.until_ms)
            there_ms = max(0, end_ms - max(start_ms, workers.at_ms))
            slots[place] += workers.slots * there_ms / bins.size_ms
    return [round(count, 2) for count in slots]


def percentile(ordered: Sequence[int], percent: int) -> int:
    """By nearest rank, exact; 0 for none."""
    if not ordered:
        return 0
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]


def attained(rows: Iterable[Row]) -> float:
    """Of the jobs started or past due, the share that waited no longer than its SLO."""
    judged = kept = 0
    for row in rows:
        slo_ms = row.slo_ms
        judged += len(row.waits_ms) + len(row.overdue_ms)
        kept += sum(1 for wait in row.waits_ms if wait <= slo_ms)
    return _share(kept, judged) if judged else 1.0


def lane_results(rows: list[Row], bins: Bins) -> dict[str, LaneResult]:
    """By name, shortest SLO first."""
    lanes: defaultdict[tuple[int, str], list[Row]] = defaultdict(list)
    slos: defaultdict[str, set[int]] = defaultdict(set)
    for row in rows:
        lanes[row.slo_ms, row.queue].append(row)
        slos[row.queue].add(row.slo_ms)
    named = {}
    for (slo_ms, queue), own in sorted(lanes.items()):
        is_only = len(slos[queue]) == 1
        name = queue if is_only else f"{queue}/{format_ms(slo_ms)}"
        while name in named:  # a queue may itself be called "a/30s"
            name = f"{name}/{format_ms(slo_ms)}"
        named[name] = LaneResult(
            queue=queue,
            slo_ms=slo_ms,
            jobs=_jobs(own),
            unstarted=sum(row.unstarted for row in own),
            attained=attained(own),
            wait_ms=_wait_times(own),
            unfairness=_unfairness(own),
            series=_series(own, bins),
        )
    return named


class Groups:
    """Sums the rows up by load and by tenant."""

    def __init__(self, rows: list[Row], run_ms: Mapping[Key, int]) -> None:
        self._rows = rows
        self._run_ms = run_ms
        self._starts = sum(len(row.waits_ms) for row in rows)
        self._busy_ms = sum(run_ms.values())

    def loads(self, names: list[str]) -> dict[str, GroupResult]:
        rows: list[list[Row]] = [[] for _ in names]
        run_ms = [0] * len(names)
        for row in self._rows:
            rows[row.load].append(row)
        for (_, _, _, load), spent_ms in self._run_ms.items():
            run_ms[load] += spent_ms
        return {
            name: self._group(rows[load], run_ms[load])
            for load, name in enumerate(names)
        }

    def tenants(self) -> tuple[dict[str, GroupResult], GroupResult | None, int]:
        """The largest by name, the others as one, and how many there are."""
        rows: defaultdict[str, list[Row]] = defaultdict(list)
        run_ms: defaultdict[str, int] = defaultdict(int)
        for row in self._rows:
            rows[row.tenant].append(row)
        for (_, _, tenant, _), spent_ms in self._run_ms.items():
            run_ms[tenant] += spent_ms
        ranked = sorted(rows, key=lambda tenant: (-_jobs(rows[tenant]), tenant))
        shown, others = ranked[:TENANTS_SHOWN], ranked[TENANTS_SHOWN:]
        named = {tenant: self._group(rows[tenant], run_ms[tenant]) for tenant in shown}
        if not others:
            return named, None, len(ranked)
        folded = self._group(
            [row for tenant in others for row in rows[tenant]],
            sum(run_ms[tenant] for tenant in others),
        )
        return named, folded, len(ranked)

    def _group(self, rows: list[Row], run_ms: int) -> GroupResult:
        starts = sum(len(row.waits_ms) for row in rows)
        return GroupResult(
            jobs=_jobs(rows),
            attained=attained(rows),
            wait_ms=_wait_times(rows),
            share=_share(starts, self._starts),
            run_share=_share(run_ms, self._busy_ms),
        )


def _share(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0


def _jobs(rows: list[Row]) -> int:
    return sum(len(row.waits_ms) + row.unstarted for row in rows)


def _wait_times(rows: Iterable[Row]) -> WaitTimes:
    waits = _column()
    for row in rows:
        waits.extend(row.waits_ms)
        waits.extend(row.overdue_ms)
    ordered = sorted(waits)
    longest = ordered[-1] if ordered else 0
    return WaitTimes(percentile(ordered, 50), percentile(ordered, 99), longest)


def _unfairness(rows: Iterable[Row]) -> float:
    firsts: dict[str, int] = {}
    for row in rows:
        if row.first:
            tenant = row.tenant
            firsts[tenant] = min(row.first, firsts.get(tenant, row.first))
    if not firsts:
        return 0.0
    return round(sum(firsts.values()) / len(firsts) ** 2, 6)


def _series(rows: list[Row], bins: Bins) -> Series:
    waits: list[list[int]] = [[] for _ in range(bins.places)]
    for row in rows:
        for at_ms, wait_ms in zip(row.ats_ms, row.waits_ms, strict=True):
            waits[(at_ms - bins.epoch_ms) // bins.size_ms].append(wait_ms)
    for own in waits:
        own.sort()
    return Series(
        starts=[len(own) for own in waits],
        mean_ms=[round(sum(own) / len(own)) if own else None for own in waits],
        p99_ms=[percentile(own, 99) if own else None for own in waits],
        max_ms=[own[-1] if own else None for own in waits],
    )
