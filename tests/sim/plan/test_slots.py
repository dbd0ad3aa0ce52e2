"""Worker slots are read off what was done: who idles while jobs wait is not there."""

from headway.sim.plan.slots import GRACE_MS, Run, Waited, estimate
from headway.sim.scenario import Workers

END = 60_000


def busy(worker: str, from_ms: int, to_ms: int, queue: str = "q") -> list[Run]:
    """One slot that runs jobs of 100 ms, 10 ms apart, all of which had waited."""
    return [
        Run(at_ms, at_ms + 100, max(0, at_ms - 2_000), worker, queue)
        for at_ms in range(from_ms, to_ms, 110)
    ]


def waits(runs: list[Run]) -> list[Waited]:
    return [Waited(run.ready_ms, run.started_ms, run.queue) for run in runs]


def test_slots_that_are_always_busy_are_always_there() -> None:
    runs = busy("w1", 0, END) + busy("w1", 5, END) + busy("w2", 3, END)
    found = estimate(runs, waits(runs), 0, END)
    assert found.workers == (Workers(slots=3),)
    assert found.gap_ms == 10


def test_a_job_that_is_leased_before_the_end_of_the_last_is_heard_of_is_no_slot() -> (
    None
):
    runs = [
        run._replace(
            ended_ms=run.ended_ms + (30 if (place + 40 * slot) % 250 == 0 else 0)
        )
        for slot in range(6)
        for place, run in enumerate(busy("w1", 17 * slot, END))
    ]
    assert estimate(runs, waits(runs), 0, END).workers == (Workers(slots=6),)


def test_jobs_whose_end_is_heard_of_late_do_not_hold_their_slots_for_so_long() -> None:
    runs = [run for slot in range(6) for run in busy("w1", 17 * slot, END)]
    late = [
        run._replace(
            token=place + 1,
            ended_ms=run.ended_ms + (2_000 if 30_000 <= run.started_ms < 30_300 else 0),
        )
        for place, run in enumerate(runs)
    ]
    found = estimate(late, waits(late), 0, END)
    assert found.workers == (Workers(slots=6),)
    assert len(found.cuts_ms) >= 15
    assert max(found.cuts_ms.values()) < 1_000


def test_many_slots_are_counted_though_some_always_wait_for_their_next_job() -> None:
    runs = [run for slot in range(100) for run in busy("w1", 11 * slot % 110, END)]
    found = estimate(runs, waits(runs), 0, END)
    assert sum(one.slots for one in found.workers) in range(90, 101)


def test_a_worker_that_comes_and_goes_during_a_backlog_is_there_in_between() -> None:
    stays, guest = busy("w1", 0, END), busy("w2", 20_000, 40_000)
    found = estimate(stays + guest, waits(stays), 0, END)
    assert [one.slots for one in found.workers] == [1, 1]
    stayed, came = found.workers
    assert (stayed.at_ms, stayed.until_ms) == (0, None)
    assert came.at_ms == 20_000
    assert came.until_ms is not None
    assert 39_900 <= came.until_ms <= 40_110


def test_a_slot_that_idles_while_nothing_waits_stays() -> None:
    runs = [*busy("w1", 0, 10_000), *busy("w1", 50_000, END)]
    quick = [Waited(run.started_ms - 5, run.started_ms, "q") for run in runs]
    assert estimate(runs, quick, 0, END).workers == (Workers(slots=1),)


def test_a_short_pause_during_a_backlog_is_no_leave() -> None:
    runs = [*busy("w1", 0, 10_000), *busy("w1", 10_000 + GRACE_MS // 2, END)]
    assert estimate(runs, [Waited(0, END, "q")], 0, END).workers == (Workers(slots=1),)


def test_workers_that_never_take_a_queue_do_not_serve_it() -> None:
    runs = [*busy("w1", 0, END, "mail"), *busy("w2", 0, END, "calls")]
    found = estimate(runs, waits(runs), 0, END)
    assert {one.queues for one in found.workers} == {("mail",), ("calls",)}


def test_a_worker_with_few_jobs_is_not_told_to_be_choosy() -> None:
    runs = [*busy("w1", 0, END, "mail"), *busy("w1", 60, END, "calls")]
    runs.append(Run(100, 200, 0, "w2", "mail"))
    found = estimate(runs, [], 0, END)
    assert {one.queues for one in found.workers} == {None}
