"""The process that runs a simulation for a server: a scenario comes in, figures go out."""

import os
import resource
import sys
from typing import Final

import msgspec

from headway.server.whatif import PATH
from headway.sim.result import Result
from headway.sim.scenario_file import parse_scenario
from headway.sim.world import run
from headway.wire.live import Simulated, SimulatedLane

CPU_S: Final = 20
MEMORY_BYTES: Final = 1 << 30


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    os.nice(10)
    result = run(parse_scenario(sys.stdin.buffer.read(), PATH))
    sys.stdout.buffer.write(msgspec.json.encode(_simulated(result)))


def _simulated(result: Result) -> Simulated:
    lanes = [
        SimulatedLane(
            lane.queue,
            lane.slo_ms,
            lane.jobs,
            lane.unstarted,
            lane.attained,
            lane.wait_ms.p50,
            lane.wait_ms.p99,
            lane.wait_ms.max,
            lane.series.p99_ms,
        )
        for lane in result.lanes.values()
    ]
    return Simulated(
        result.title or result.scenario,
        result.simulated_jobs,
        result.duration_ms,
        result.ended_ms,
        result.attained,
        result.bin_ms,
        lanes,
        result.load.work_slots,
        result.load.slots,
    )


if __name__ == "__main__":
    main()
