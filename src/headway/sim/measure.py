"""Takes note of every first start while a run goes on, and sums up at its end."""

from array import array
from collections import defaultdict

import msgspec

from headway.sim.result import LimitUse, LoadSeries, Outcomes, Result
from headway.sim.scenario import Scenario
from headway.sim.summary import (
    Groups,
    Key,
    Row,
    attained,
    bins_of,
    lane_results,
    merged,
    slots_over_time,
)


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """What only the world knows when a run is over."""

    policy: str
    seed: int
    digest: str
    ended_ms: int
    """Since the Unix epoch."""
    simulated_jobs: int
    simulated_jobs_per_second: float
    limits: dict[str, LimitUse]
    outcomes: Outcomes


class Measure:
    """Fed by the world, in order of time. Times are since the Unix epoch."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._ids: dict[Key, int] = {}
        # Three columns instead of a list for each key: a start costs a look-up
        # and three appends, whatever the number of tenants.
        self._places = array("q")
        self._ats_ms = array("q")
        self._waits_ms = array("q")
        self._left_ms: defaultdict[int, list[int]] = defaultdict(list)
        self._run_ms: defaultdict[Key, int] = defaultdict(int)
        self._arrivals: list[int] = []
        self._work_ms: list[int] = []

    def arrived(self, at_ms: int, run_ms: int) -> None:
        """A job came in that will keep a slot busy for `run_ms`."""
        place = (at_ms - self._scenario.epoch_ms) // self._scenario.bin_ms
        try:
            self._arrivals[place] += 1
            self._work_ms[place] += run_ms
        except IndexError:
            more = place + 1 - len(self._arrivals)
            self._arrivals += [0] * more
            self._work_ms += [0] * more
            self._arrivals[place] += 1
            self._work_ms[place] += run_ms

    def started(self, key: Key, at_ms: int, wait_ms: int) -> None:
        """A job started for the first time."""
        place = self._ids.get(key)
        if place is None:
            place = self._ids[key] = len(self._ids)
        self._places.append(place)
        self._ats_ms.append(at_ms)
        self._waits_ms.append(wait_ms)

    def ran(self, key: Key, run_ms: int) -> None:
        """A worker was busy for `run_ms` with an attempt, whatever its end."""
        self._run_ms[key] += run_ms

    def never_started(self, key: Key, wait_ms: int) -> None:
        """A job was still waiting when the run ended."""
        place = self._ids.setdefault(key, len(self._ids))
        self._left_ms[place].append(wait_ms)

    def result(self, ending: Ending) -> Result:
        """The run in figures."""
        scenario = self._scenario
        rows = self._rows()
        ended_ms = ending.ended_ms - scenario.epoch_ms
        bins = bins_of(scenario, ended_ms)
        groups = Groups(rows, self._run_ms)
        tenants, folded, tenants_count = groups.tenants()
        return Result(
            scenario=scenario.name,
            title=scenario.title,
            policy=ending.policy,
            seed=ending.seed,
            digest=ending.digest,
            simulated_jobs=ending.simulated_jobs,
            simulated_jobs_per_second=round(ending.simulated_jobs_per_second, 1),
            duration_ms=scenario.duration_ms,
            ended_ms=ended_ms,
            attained=attained(rows),
            outcomes=ending.outcomes,
            lanes=lane_results(rows, bins),
            loads=groups.loads([load.name for load in scenario.loads]),
            tenants=tenants,
            tenants_folded=folded,
            tenants_count=tenants_count,
            limits=ending.limits,
            bin_ms=bins.size_ms,
            load=LoadSeries(
                arrivals=merged(self._arrivals, scenario, bins),
                work_slots=[
                    round(work_ms / bins.size_ms, 2)
                    for work_ms in merged(self._work_ms, scenario, bins)
                ],
                slots=slots_over_time(scenario, bins),
            ),
        )

    def _rows(self) -> list[Row]:
        rows = [Row(*key) for key in self._ids]
        starts: defaultdict[tuple[str, int], int] = defaultdict(int)
        columns = zip(self._places, self._ats_ms, self._waits_ms, strict=True)
        for place, at_ms, wait_ms in columns:
            row = rows[place]
            lane = (row.queue, row.slo_ms)
            starts[lane] += 1
            if not row.waits_ms:
                row.first = starts[lane]
            row.waits_ms.append(wait_ms)
            row.ats_ms.append(at_ms)
        for place, waits_ms in self._left_ms.items():
            row = rows[place]
            row.unstarted = len(waits_ms)
            row.overdue_ms.extend(wait for wait in waits_ms if wait > row.slo_ms)
        return rows
