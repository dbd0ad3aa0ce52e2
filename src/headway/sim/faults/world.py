"""One seed from beginning to end: faults for a while, then none until all work is done."""

import traceback
from random import Random
from typing import Final

from headway.core.config import Concurrency, Limit, Order, QueueConfig, Rate
from headway.core.retry import Exponential, Fixed, Retry
from headway.sim.faults.checks_events import unfinished
from headway.sim.faults.media import DiskMedium, Medium, MemoryMedium
from headway.sim.faults.node import Node
from headway.sim.faults.operators import Operator
from headway.sim.faults.producers import Producer, Replier
from headway.sim.faults.rates import Kind, draw_rates
from headway.sim.faults.stage import START_MS, Stage
from headway.sim.faults.verdict import (
    CORRECTNESS,
    CRASH,
    LIVENESS,
    OK,
    Result,
    Stalled,
    Violation,
    expect,
)
from headway.sim.faults.workers import Worker

DRAIN_MS: Final = 30 * 60_000
"""The bound of invariant 29."""
ACTS_MAX: Final = 60_000
CLOCK_STEPS_MS: Final = (-86_400_000, -600_000, -5_000, 3_000, 60_000, 1_800_000)


class World:
    """Everybody and everything of one seed."""

    def __init__(self, seed: int) -> None:
        chance = Random(f"{seed} world")
        rates = draw_rates(chance)
        self.stage = Stage(seed, rates, draw_configs(chance))
        self.medium: Medium = (
            DiskMedium(seed, self.stage.chance("medium"))
            if rates.is_on_disk
            else MemoryMedium(self.stage.chance("medium"))
        )
        self.node = Node(self.stage, self.medium)
        self._chance = self.stage.chance("faults")
        replier = Replier(self.stage)
        producers = chance.randint(1, 3)
        orders = chance.randint(5, 45) // producers + 1
        self.producers = [Producer(self.stage, n, orders) for n in range(producers)]
        self.workers = [
            Worker(self.stage, f"w{n}", replier) for n in range(chance.randint(1, 4))
        ]
        self.operator = Operator(self.stage)

    def run(self) -> None:
        self.node.start()
        for producer in self.producers:
            producer.begin()
        self.operator.begin()
        for worker in self.workers:
            self.stage.agenda.after(self._chance.randrange(2_000), worker.poll)
        self._plan_fault()
        end_ms = self.stage.agenda.now_ms + self.stage.rates.fault_ms
        self.stage.agenda.run_until(end_ms, ACTS_MAX)
        self._heal()
        self._drain()
        self._reopen()

    def _heal(self) -> None:
        stage = self.stage
        stage.note("healed")
        stage.is_healed = stage.network.is_healed = True
        self.medium.heal()
        self.node.is_mute = False
        self.node.slow_until_ms = 0
        self.node.start()

    def _drain(self) -> None:
        """29: all work comes to an end; nothing of it is lost."""
        agenda, panel = self.stage.agenda, self.stage.panel
        # What was said before the end of faults may still be under way.
        agenda.run_until(agenda.now_ms + 5_000, ACTS_MAX)
        self.operator.lift()
        agenda.run_until(agenda.now_ms + 5_000, ACTS_MAX)
        agenda.run_until(agenda.now_ms + DRAIN_MS, ACTS_MAX, panel.is_drained)
        if not panel.is_drained():
            raise Stalled(f"invariant 29: {unfinished(panel.account)}")
        panel.drained()

    def _reopen(self) -> None:
        """31: the store is whole, and its next owner finds all as it was."""
        self.node.close()
        assert self.node.life is not None
        self.node.life.owner.close()
        found = self.medium.problems()
        expect(not found, "invariant 31", *found)

    def _plan_fault(self) -> None:
        gap_ms = self.stage.rates.fault_gap_ms
        if gap_ms:
            delay_ms = 1 + int(self._chance.expovariate(1 / gap_ms))
            self.stage.agenda.after(delay_ms, self._strike)

    def _strike(self) -> None:
        stage, node, chance = self.stage, self.node, self._chance
        if stage.is_healed:
            return
        kind = chance.choice(stage.rates.kinds)
        stage.counts[f"fault: {kind}"] += 1
        stage.note("fault:", str(kind))
        match kind:
            case Kind.CRASH | Kind.POWER_CUT:
                node.crash(is_power_cut=kind is Kind.POWER_CUT)
            case Kind.STOP | Kind.CUT | Kind.WRITE | Kind.SYNC | Kind.FULL:
                node.is_cut = kind is Kind.CUT
                self.medium.plan(kind)
            case Kind.MUTE:
                node.is_mute = True
            case Kind.CLOCK:
                stage.wall_offset_ms += chance.choice(CLOCK_STEPS_MS)
            case Kind.PAUSE:
                node.pause(chance.randrange(1, 20_000))
            case Kind.APART:
                until_ms = stage.agenda.now_ms + chance.randrange(10_000)
                stage.network.cut_until_ms = until_ms
            case Kind.SLOW:
                node.slow_until_ms = stage.agenda.now_ms + chance.randrange(10_000)
            case Kind.CLOSE:
                node.close()
        self._plan_fault()


def draw_configs(chance: Random) -> tuple[QueueConfig, ...]:
    """One to three queues, each with rules of its own."""
    return tuple(_config(chance, f"q{n}") for n in range(chance.randint(1, 3)))


def _config(chance: Random, name: str) -> QueueConfig:
    limits: list[Limit] = []
    if chance.random() < 0.4:
        per = chance.choice([None, "tenant"])
        limits.append(Concurrency("slots", chance.randint(2, 5), per))
    if chance.random() < 0.35:
        burst = chance.choice([None, None, 2, 10])
        period_ms = chance.choice([2_000, 4_000])
        limits.append(Rate("pace", chance.randint(4, 10), period_ms, burst))
    orders = [Order.FAIR] * 4 + [Order.TIME, Order.PRIORITY]
    retries: list[Retry] = [Fixed(1_000), Exponential(500, 8_000)]
    return QueueConfig(
        name=name,
        order=chance.choice(orders),
        slo_ms=chance.choice([1_000, 30_000]),
        lease_ms=chance.choice([4_000, 10_000]),
        attempts_max=chance.randint(1, 5),
        timeout_ms=chance.choice([6_000, 30_000, 600_000]),
        retry=chance.choice(retries),
        limits=tuple(limits),
        idempotency_window_ms=chance.choice([30_000, 600_000]),
        early_reply_ms=60_000,
    )


def run_seed(seed: int) -> Result:
    """Runs one seed; whatever goes wrong is in the result."""
    world = World(seed)
    stage = world.stage
    code, text = OK, ""
    try:
        world.run()
    except Violation as violation:
        code, text = CORRECTNESS, str(violation)
    except Stalled as stalled:
        code, text = LIVENESS, str(stalled)
    except Exception:
        code, text = CRASH, traceback.format_exc()
    finally:
        world.medium.close()
    counts, network = stage.counts, stage.network
    counts["messages"] += network.sent
    counts["messages lost"] += network.lost
    counts["messages doubled"] += network.doubled
    counts["jobs"] += len(stage.panel.account.records)
    counts["delivered twice"] += stage.panel.total.duplicated
    counts["recovered"] += stage.panel.total.recovered
    counts["virtual seconds"] += (stage.agenda.now_ms - START_MS) // 1_000
    counts["on disk"] += stage.rates.is_on_disk
    stage.note("end", sorted(counts.items()))
    digest = stage.panel.digest.hexdigest()
    return Result(seed, code, digest, text, counts, stage.trace() if code else [])
