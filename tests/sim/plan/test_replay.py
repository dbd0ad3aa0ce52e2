"""A replay of what ran is what happened; other workers and rules are what they would be."""

from statistics import median
from typing import Any

import msgspec
import pytest

from headway.core import events
from headway.core.commands import SetTenant
from headway.core.config import Concurrency, QueueConfig, Rate
from headway.core.errors import BadValue
from headway.sim.actions import Action, Do
from headway.sim.plan.answer import calibration, plan
from headway.sim.plan.change import Change, altered, check
from headway.sim.plan.grid import Grid
from headway.sim.plan.outcome import Outcome
from headway.sim.plan.recorded import AttemptRow, End, JobRow, Span, arrivals
from headway.sim.plan.recording import Recording, look_back
from headway.sim.plan.replay import Point, ReplayWorld, replay, resized, simulate
from headway.sim.scenario import (
    Burst,
    Exact,
    Load,
    NamedTenants,
    OneTenant,
    Scenario,
    Service,
    Steady,
    Workers,
)
from tests.sim.plan.overload import overload
from tests.sim.plan.told import history_of, recording_of

COMING_AND_GOING = (
    (
        Workers(slots=5),
        Workers(slots=3, at_ms=15_000, until_ms=30_000),
        Workers(slots=4, at_ms=35_000),
    ),
    (
        Workers(slots=8, until_ms=20_000),
        Workers(slots=6, at_ms=20_000, until_ms=40_000),
        Workers(slots=10, at_ms=38_000),
    ),
)


def replayed(scenario: Scenario, point: Point | None = None) -> Outcome:
    recording, rows = recording_of(scenario, history_of(scenario))
    return replay(recording, rows, point or Point())


def error_points(
    scenario: Scenario, from_ms: int = 0, head_ms: int = 0, seed: int = 1
) -> float:
    told = history_of(scenario, seed)
    recording, rows = recording_of(scenario, told, from_ms, head_ms)
    found = calibration(recording, replay(recording, rows, Point()))
    assert min(lane.recorded for lane in found.lanes.values()) < 0.9, "no overload"
    return found.error_points


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_replay_of_steady_workers_is_what_happened(seed: int) -> None:
    assert error_points(overload(), seed=seed) <= 0.1


def test_a_replay_from_the_midst_is_what_happened_if_it_warms_up() -> None:
    assert error_points(overload(), from_ms=20_000, head_ms=20_000) <= 0.1


@pytest.mark.parametrize("workers", COMING_AND_GOING)
def test_a_replay_of_workers_that_come_and_go_is_close(
    workers: tuple[Workers, ...],
) -> None:
    """Mostly: which slot goes first nobody has written down, and one job more or less
    before a lane is over its head moves all that come after it."""
    found = [error_points(overload(workers=workers), seed=seed) for seed in range(1, 6)]
    assert median(found) <= 6.0


def test_a_replay_knows_rules_that_changed_on_the_way() -> None:
    scenario = Scenario(
        name="pause",
        duration_ms=30_000,
        workers=(Workers(slots=4),),
        queues=(QueueConfig(name="mail", slo_ms=1_000),),
        loads=(
            Load(
                name="mail",
                queue="mail",
                tenants=NamedTenants(names=("a", "b", "c")),
                arrivals=Steady(per_second=12),
                service=Service(mean_ms=300),
            ),
        ),
        actions=(
            Action(
                at_ms=5_000,
                do=Do.LIMITS,
                queue="mail",
                limits=(Concurrency("partner", 2),),
            ),
            Action(at_ms=12_000, do=Do.LIMITS, queue="mail"),
            Action(at_ms=15_000, do=Do.PAUSE_TENANT, queue="mail", tenant="b"),
            Action(at_ms=20_000, do=Do.RESUME_TENANT, queue="mail", tenant="b"),
        ),
    )
    assert error_points(scenario) <= 0.1


def test_a_rate_that_is_lowered_on_the_way_holds_from_then_on() -> None:
    scenario = Scenario(
        name="rate",
        duration_ms=10_000,
        workers=(Workers(slots=50),),
        queues=(
            QueueConfig(name="mail", slo_ms=1_000, limits=(Rate("pace", 100, 1_000),)),
        ),
        loads=(
            Load(
                name="mail",
                queue="mail",
                arrivals=Steady(per_second=90),
                service=Service(mean_ms=10),
            ),
        ),
        actions=(
            Action(
                at_ms=5_000,
                do=Do.LIMITS,
                queue="mail",
                limits=(Rate("pace", 5, 1_000),),
            ),
        ),
    )
    assert error_points(scenario) <= 1.0


def test_replays_of_one_point_are_the_same_to_the_last_event() -> None:
    point = Point(workers=7)
    assert replayed(overload(), point) == replayed(overload(), point)


def test_more_workers_keep_more_promises_and_fewer_break_more() -> None:
    scenario = overload()
    recording, rows = recording_of(scenario, history_of(scenario))
    kept = [
        min(
            lane.attained
            for lane in replay(recording, rows, Point(workers=n)).lanes.values()
        )
        for n in (4, 8, 14)
    ]
    assert kept == sorted(kept)
    assert kept[0] < 0.5
    assert kept[2] >= 0.99


def test_a_heavier_tenant_would_have_suffered_less() -> None:
    scenario = Scenario(
        name="two",
        duration_ms=20_000,
        workers=(Workers(slots=2),),
        queues=(QueueConfig(name="mail", slo_ms=5_000),),
        loads=tuple(
            Load(
                name=tenant,
                queue="mail",
                tenants=OneTenant(name=tenant),
                arrivals=Burst(count=100),
                service=Service(mean_ms=100),
            )
            for tenant in ("a", "b")
        ),
    )
    heavy = Point(change=Change(name="heavy", weights={"a": 9.0}))
    as_it_was = {one.tenant: one.attained for one in replayed(scenario).sufferers}
    changed = {one.tenant: one.attained for one in replayed(scenario, heavy).sufferers}
    swept = {one.tenant: one.attained for one in simulate(scenario, heavy).sufferers}
    assert as_it_was["a"] == pytest.approx(as_it_was["b"], abs=0.03)
    assert changed["a"] > 0.85
    assert changed["b"] < 0.25
    assert swept == changed


def test_a_lower_limit_would_have_cost_promises_and_another_slo_makes_another_lane() -> (
    None
):
    scenario = Scenario(
        name="limited",
        duration_ms=20_000,
        workers=(Workers(slots=10),),
        queues=(
            QueueConfig(name="mail", slo_ms=1_000, limits=(Concurrency("line", 8),)),
        ),
        loads=(
            Load(
                name="mail",
                queue="mail",
                arrivals=Steady(per_second=20),
                service=Service(mean_ms=250),
            ),
        ),
    )
    lower = Point(change=Change(name="lower", limits={"line": 3}))
    slower = Point(change=Change(name="slower", limits={"line": 3}, slo_ms=60_000))
    assert replayed(scenario).lanes["mail"].attained == 1.0
    assert replayed(scenario, lower).lanes["mail"].attained < 0.5
    found = replayed(scenario, slower).lanes["mail"]
    assert (found.slo_ms, found.attained) == (60_000, 1.0)


SPAN = Span(
    epoch_ms=0, begin_ms=0, from_ms=0, to_ms=100_000, until_ms=100_000, known_ms=90_000
)


def steps_of(*attempts: AttemptRow, ended_ms: int | None) -> Any:
    row = JobRow("q", 1_000, "t", "k", 5, 5, ended_ms, attempts=list(attempts))
    (found,) = arrivals([row], SPAN, lambda _: 77)
    return found


def test_attempts_come_again_with_their_delays_and_replies() -> None:
    found = steps_of(
        AttemptRow(10, 30, "retry", 5, 0, is_again=False),
        AttemptRow(100, 110, "lose", 20, 0, is_again=False),
        AttemptRow(120, 140, "wait", 90, 0, is_again=True),
        AttemptRow(250, 260, "ack", 10, 0, is_again=False),
        ended_ms=260,
    )
    assert [(step.end, step.run_ms, step.after_ms) for step in found.steps] == [
        (End.RETRY, 20, 50),
        (End.RELEASE, 10, None),
        (End.WAIT, 20, 100),
        (End.ACK, 10, None),
    ]
    assert found.withdrawn_ms is None


class Watched(ReplayWorld):
    """Notes when attempts started."""

    starts_ms: tuple[int, ...] = ()

    def _started(self, event: events.Leased) -> None:
        self.starts_ms += (event.at_ms,)
        super()._started(event)


def test_attempts_start_again_when_their_recorded_delays_and_replies_are_over() -> None:
    row = JobRow("q", 1_000, "t", "k", 1_000, 1_000, 30_200)
    row.attempts = [
        AttemptRow(1_000, 1_100, "retry", 0, 0, is_again=False),
        AttemptRow(8_100, 8_200, "wait", 0, 0, is_again=False),
        AttemptRow(20_200, 20_300, "lose", 0, 0, is_again=False),
        AttemptRow(20_300, 20_400, "wait", 100, 0, is_again=True),
    ]
    recording = Recording(span=SPAN, queues=("q",), rules=())
    happened = look_back(recording, [row])
    coming = arrivals([row], SPAN, lambda _: 77)
    configs = recording.configs().values()
    world = Watched(
        recording.scenario((Workers(slots=1),), configs), coming, SPAN, happened, 1
    )
    world.run(None)
    assert world.starts_ms == (1_000, 8_100, 20_200, 20_300)
    assert world.outcomes["done"] == 1
    assert world.now_ms == 30_200


def test_a_job_that_was_cancelled_while_it_waited_is_cancelled_again() -> None:
    found = steps_of(ended_ms=400)
    assert found.withdrawn_ms == 400
    assert [(step.end, step.run_ms) for step in found.steps] == [(End.ACK, 77)]


def test_a_job_that_is_not_over_is_judged_only_if_its_promise_is_decided() -> None:
    assert steps_of(ended_ms=None).is_judged
    early = msgspec.structs.replace(SPAN, known_ms=500)
    row = JobRow("q", 1_000, "t", "k", 5, 5)
    (undecided,) = arrivals([row], early, lambda _: 77)
    assert not undecided.is_judged


def test_cancelled_jobs_of_a_run_are_cancelled_in_its_replay() -> None:
    scenario = Scenario(
        name="purge",
        duration_ms=10_000,
        workers=(Workers(slots=1),),
        queues=(QueueConfig(name="mail", slo_ms=1_000),),
        loads=(
            Load(
                name="mail",
                queue="mail",
                arrivals=Exact(at_ms=(0, 0, 0, 0, 0, 6_000)),
                service=Service(mean_ms=2_000),
            ),
        ),
        actions=(Action(at_ms=3_000, do=Do.PURGE, queue="mail"),),
    )
    assert error_points(scenario) <= 0.1


def test_slots_are_divided_between_sets_of_queues_as_they_were() -> None:
    workers = (
        Workers(slots=6, queues=("a",)),
        Workers(slots=2, queues=("b",)),
    )
    found = {one.queues: one.slots for one in resized(workers, 12, 0)}
    assert found == {("a",): 9, ("b",): 3}


def test_changes_of_what_is_not_there_are_refused_by_their_key() -> None:
    configs = [QueueConfig(name="mail", slo_ms=1_000, limits=(Concurrency("l", 3),))]
    for change, key in (
        (Change(key="change[0]", queue="nope", weight=2.0), "change[0].queue"),
        (Change(key="change[1]", limits={"x": 3}), "change[1].limits.x"),
        (Change(key="change[2]", margin_ms=2_000), "change[2].margin"),
    ):
        with pytest.raises(BadValue) as refused:
            check(change, configs)
        assert refused.value.key == key


def test_a_recorded_weight_gives_way_to_the_one_that_is_tried() -> None:
    change = Change(weights={"a": 4.0})
    told = altered(SetTenant("mail", "a", weight=2.0), change)
    assert isinstance(told, SetTenant)
    assert told.weight == 4.0


def test_the_recommendation_names_the_fewest_and_what_fewer_would_do() -> None:
    scenario = overload()
    outcomes = [simulate(scenario, Point(workers=n)) for n in (8, 14)]
    made = plan(Grid(workers=(8, 14)), outcomes, None)
    assert made.recommended == 14
    assert made.recommendation.startswith("14 workers are the fewest that keep every")
    assert "; 8 keep " in made.recommendation
    none = plan(Grid(workers=(8,)), outcomes[:1], None)
    assert none.recommended is None
    assert none.recommendation.startswith("No number of workers that was tried")


def test_of_queues_that_are_as_urgent_the_older_goes_first_again() -> None:
    """Whatever their names are: each job of the one comes with one of the other."""
    names = ("zoo", "ant")
    scenario = Scenario(
        name="ties",
        duration_ms=20_000,
        workers=(Workers(slots=2),),
        queues=tuple(QueueConfig(name=name, slo_ms=1_000) for name in names),
        loads=tuple(
            Load(
                name=name,
                queue=name,
                tenants=OneTenant(name="a"),
                arrivals=Steady(per_second=8),
                service=Service(mean_ms=run_ms),
            )
            for name, run_ms in zip(names, (400, 100), strict=True)
        ),
    )
    assert error_points(scenario) == 0.0
