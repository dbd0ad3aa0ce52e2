"""What a job costs the core: by tenants, strands, lanes, backlog and features.

A cycle is enqueue, lease, ack, in batches of 100 jobs, over a backlog that stands as
it is. Each case takes turns with its peer, so that both meet the same machine, and each
has a process of its own: in one, a peer would get the places in memory that the jobs of
its case have left, which are in no cache. Only CPU time inside `Partition.decide` counts,
and not what another thread does meanwhile: clear memory that has not been used yet.
Garbage is collected as a server has it: the backlog is frozen when it is built, and new
objects are walked by the server's thresholds.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from array import array
from operator import itemgetter

from msgspec.structs import replace

from benchmarks.core_cases import CASES, ONE, Case
from benchmarks.figure import Figure
from benchmarks.timers import resident_bytes
from headway.core.commands import Ack, Command, Configure, Enqueue, Granted, Lease
from headway.core.job import Job
from headway.core.partition import Partition
from headway.core.spec import JobSpec
from headway.runtime import arenas
from headway.runtime.collector import settle

BATCH = 100
JOBS = 10_000
"""Jobs in one repetition, after which a case and its peer take turns: enough to hold what
is put off and then done at one go, and for caches to be as they are in a long run."""
REPETITIONS = 9
"""After one that warms up: 100,000 jobs by then, as many as there are strands."""
RUNS = 3
"""Where objects lie in memory is luck, and moves a ratio by a twentieth: that is drawn anew so
often where there is a ceiling, and the middle one counts."""
STEP_MS = 5
START_MS = 1_762_300_800_000
"""A Wednesday at midnight, UTC."""
SEED = 20_251_115


class Bench:
    """One case, built and ready to be measured."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.partition = Partition(has_fairness=case.is_fair)
        self.now_ms = START_MS
        self._chance = random.Random(SEED)
        self._numbers = 0
        self._tokens = array("q")
        """As plain numbers: a server makes those of a request when it reads it."""
        self._acked = 0
        self._started: list[Job] = []
        self.visited: set[str] = set()
        """Tenants, strands or lanes from which a job was started. As text, and no tuple:
        the collector would count one for each, and walk the core's jobs for it."""
        self.partition.decide([Configure(config) for config in case.queues], START_MS)
        self.partition.decide(case.rules, START_MS)
        if case.is_full:
            self._fill(case.room or case.values)
            self._occupy()
        self._fill(case.backlog)
        if case.is_full:
            # The core puts what can't start out of the way some hundred at a time.
            for _ in range(case.values // 100):
                assert not self._decide([Lease()])
        else:
            self._fill(BATCH)
            self._keep(self._decide([Lease(max=BATCH)]))
        self.now_ms += case.late_ms

    def repeat(self, jobs: int) -> float:
        """Seconds of CPU for the cycles of so many jobs."""
        spent = 0.0
        for _ in range(jobs // BATCH):
            ack = Ack(self._next_tokens())
            commands: list[Command] = [ack, self._arrivals(), Lease(max=BATCH)]
            self.now_ms += STEP_MS
            began = time.thread_time()
            # As an owner does, it keeps the answers and leaves the decision to the core.
            answers = self.partition.decide(commands, self.now_ms).answers
            spent += time.thread_time() - began
            answer = answers[-1][1]
            assert isinstance(answer, Granted)
            assert len(answer.jobs) == BATCH, f"{self.case.name}: {len(answer.jobs)}"
            self._keep(answer.jobs)
        return spent

    def _next_tokens(self) -> list[int]:
        """Of those whose job has run longest, or in no order where limits are full."""
        first, self._acked = self._acked, self._acked + BATCH
        return self._tokens[first : self._acked].tolist()

    def _arrivals(self) -> Enqueue:
        """Anything; but where limits are full, more of what has just started."""
        if self.case.is_full:
            specs = [_as_read(job.spec) for job in self._started]
            return Enqueue(self.case.queues[0].name, specs)
        return self._any()

    def _any(self) -> Enqueue:
        case = self.case
        share = case.values // len(case.queues)
        which = self._chance.randrange(len(case.queues))
        picked = (self._chance.randrange(share) for _ in range(BATCH))
        specs = [self._spec(which * share + value) for value in picked]
        return Enqueue(case.queues[which].name, specs)

    def _fill(self, jobs: int) -> None:
        """Enqueues so many, evenly over all values, in a random order."""
        case = self.case
        share = case.values // len(case.queues)
        for number, config in enumerate(case.queues):
            mine = range(number * share, (number + 1) * share)
            count = -(-jobs // len(case.queues))
            specs = [self._spec(mine[turn % share]) for turn in range(count)]
            self._chance.shuffle(specs)
            for first in range(0, count, 1_000):
                self._decide([Enqueue(config.name, specs[first : first + 1_000])])

    def _occupy(self) -> None:
        while jobs := self._decide([Lease(max=1_000)]):
            self._tokens.extend(job.token for job in jobs)
            self._started = jobs[:BATCH]
        self._chance.shuffle(self._tokens)

    def _decide(self, commands: list[Command]) -> list[Job]:
        answer = self.partition.decide(commands, self.now_ms).answers[-1][1]
        return answer.jobs if isinstance(answer, Granted) else []

    def _keep(self, jobs: list[Job]) -> None:
        self.visited.update(map(_value_of, jobs))
        self._started = jobs
        self._tokens.extend(job.token for job in jobs)

    def _spec(self, value: int) -> JobSpec:
        self._numbers += 1
        return self.case.spec(value, self._numbers)


def _as_read(spec: JobSpec) -> JobSpec:
    """The same, as new as a server makes it of a request when it reads that.

    But for the payload, which is one for all here: memory would grow meanwhile.
    """
    tenant = spec.tenant.encode().decode()
    labels = spec.labels and dict(spec.labels)
    return replace(spec, tenant=tenant, labels=labels)


def _value_of(job: Job) -> str:
    """Which tenant, strand or lane it is of: its name is what differs in a case."""
    spec = job.spec
    server = spec.labels and spec.tenant == ONE and spec.labels.get("server")
    return f"{job.queue} {job.slo_ms} {spec.tenant} {server}"


class Side:
    """A case, or its peer, in a process of its own."""

    def __init__(self, key: str, side: str) -> None:
        command = [sys.executable, "-m", "benchmarks.core_scale", "--side", side, key]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def told(self) -> dict[str, float]:
        assert self._process.stdout is not None
        results: dict[str, float] = json.loads(self._process.stdout.readline())
        return results

    def repeat(self, jobs: int) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{jobs}\n")
        self._process.stdin.flush()
        return self.told()

    def end(self) -> None:
        self._process.communicate()


def serve(case: Case) -> None:
    """Builds the case, and repeats as many jobs as each line of the input says."""
    # As a server begins.
    arenas.use()
    before_bytes = resident_bytes()
    bench = Bench(case)
    used_bytes = resident_bytes() - before_bytes
    # What a server does once its backlog is read, and by its own thresholds.
    settle()
    bench.visited.clear()
    print(json.dumps({"resident_mb": used_bytes / 1e6}), flush=True)
    for line in sys.stdin:
        spent = bench.repeat(int(line))
        told = {"spent": spent, "visited": len(bench.visited)}
        print(json.dumps(told), flush=True)


def measure(key: str) -> dict[str, float]:
    """The best repetition of a case and of its peer, in microseconds a job."""
    sides = [Side(key, "case"), Side(key, "peer")]
    ready = [side.told() for side in sides]
    times: list[list[float]] = []
    visited = 0.0
    for _ in range(1 + REPETITIONS):
        told = [side.repeat(JOBS) for side in sides]
        times.append([one["spent"] for one in told])
        visited = told[0]["visited"]
    for side in sides:
        side.end()
    # The first one warms up.
    best, best_base = (min(column) for column in zip(*times[1:], strict=True))
    return {
        "us": best * 1e6 / JOBS,
        "peer_us": best_base * 1e6 / JOBS,
        "ratio": best / best_base,
        "resident_mb": ready[0]["resident_mb"],
        "visited": visited,
    }


def run() -> list[Figure]:
    figures: list[Figure] = []
    for key in CASES:
        print(f"  {key} ...", file=sys.stderr, flush=True)
        runs = 1 if CASES[key][2] is None else RUNS
        found = sorted((measure(key) for _ in range(runs)), key=itemgetter("ratio"))
        figures += figures_of(key, found[runs // 2])
    return figures


def figures_of(key: str, results: dict[str, float]) -> list[Figure]:
    case, peer, ceiling = CASES[key]
    note = (
        f"{case.backlog:,} jobs ready, {results['visited']:,.0f} of {case.values:,} "
        f"visited, {results['resident_mb']:,.0f} MB; best of {REPETITIONS} x {JOBS:,}"
    )
    ratio_note = f"to {peer.name} ({results['peer_us']:.2f} µs), taking turns"
    if ceiling is not None:
        ratio_note += f"; the middle of {RUNS}"
    return [
        Figure(case.name, results["us"], "µs/job", note=note),
        Figure(
            f"{case.name}: ratio",
            results["ratio"],
            "x",
            ceiling=ceiling,
            note=ratio_note,
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=CASES, help="one case, as JSON")
    parser.add_argument("--side", nargs=2, metavar=("SIDE", "KEY"), help="for itself")
    options = parser.parse_args()
    if options.side:
        side, key = options.side
        # Each has a core of its own, so that it finds in the cache what it left there.
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[-1] if side == "peer" else cores[0]})
        case, peer, _ = CASES[key]
        serve(peer if side == "peer" else case)
        return
    if options.only:
        print(json.dumps(measure(options.only)))
        return
    for figure in run():
        print(f"{figure.name:45} {figure.value:9.2f} {figure.unit:7} {figure.note}")


if __name__ == "__main__":
    main()
