"""The real queue in virtual time: what would take days happens in order, at once."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import headway
from headway import testing
from headway.core.errors import BadValue
from headway.testing import VirtualQueue
from headway.wire.work import Leased
from headway.worker.hooks import Middleware

START = datetime(2026, 3, 2, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Diary:
    """An app whose handlers write down when they ran, in the queue's own time."""

    def __init__(self) -> None:
        self.app = headway.App("http://127.0.0.1:1")
        self.lines: list[tuple[str, timedelta]] = []
        self.queue: VirtualQueue | None = None

    def note(self, text: str) -> None:
        assert self.queue is not None
        self.lines.append((text, self.queue.now - START))


@pytest.fixture
def diary() -> Iterator[Diary]:
    diary = Diary()
    with testing.virtual_time(diary.app, start=START) as queue:
        diary.queue = queue
        yield diary


@pytest.fixture
def queue(diary: Diary) -> VirtualQueue:
    assert diary.queue is not None
    return diary.queue


def test_delayed_jobs_run_in_the_order_of_their_times(
    diary: Diary, queue: VirtualQueue
) -> None:
    @diary.app.job
    def work(name: str) -> None:
        diary.note(name)

    work.options(delay="3d").enqueue("last")
    work.options(run_at=START + 5 * MINUTE).enqueue("second")
    work.enqueue("first")
    queue.drain()
    assert diary.lines == [
        ("first", timedelta()),
        ("second", 5 * MINUTE),
        ("last", timedelta(days=3)),
    ]
    assert queue.now == START + timedelta(days=3)


def test_retries_wait_for_their_backoff_and_logic_is_asked(
    diary: Diary, queue: VirtualQueue
) -> None:
    def after(job: Leased, error: BaseException, attempt: int) -> Any:
        return headway.Retry(in_="1h") if attempt == 1 else headway.GiveUp

    @diary.app.job(retry=headway.Delays((60_000, 600_000)), attempts=3)
    def plain() -> None:
        diary.note("plain")
        raise ValueError

    @diary.app.job(retry=after)
    async def logic() -> None:
        diary.note("logic")
        raise ValueError

    plain.enqueue()
    logic.enqueue()
    queue.drain()
    ran = [at for name, at in diary.lines if name == "plain"]
    assert ran == [timedelta(), MINUTE, 11 * MINUTE]
    asked = [at for name, at in diary.lines if name == "logic"]
    assert asked == [timedelta(), timedelta(hours=1)]
    assert queue.counts("default").dead == 2


def test_schedules_tick_while_time_passes_and_do_not_keep_a_drain(
    diary: Diary, queue: VirtualQueue
) -> None:
    @diary.app.job
    def report() -> None:
        diary.note("report")

    diary.app.schedule(report, cron="0 6 * * *", tz="UTC", name="morning")
    queue.drain()
    assert diary.lines == []
    queue.run_for("3d")
    assert [at for _, at in diary.lines] == [
        timedelta(hours=18 + 24 * day) for day in range(3)
    ]
    assert queue.now == START + timedelta(days=3)


def test_windows_open_at_their_hour(diary: Diary, queue: VirtualQueue) -> None:
    @diary.app.job(windows="22:00-06:00 Europe/Berlin")
    def night() -> None:
        diary.note("night")

    night.enqueue()
    queue.run_until(datetime(2026, 3, 2, 21, 59, tzinfo=ZoneInfo("Europe/Berlin")))
    assert diary.lines == []
    queue.drain()
    assert diary.lines == [("night", timedelta(hours=9))]


def test_reply_comes_in_time_or_times_out(diary: Diary, queue: VirtualQueue) -> None:
    @diary.app.job(retry=headway.GiveUp())
    def ask(key: str) -> Any:
        diary.note(f"asks {key}")
        return headway.wait_for(key, timeout="10m")

    @ask.on_reply
    def answered(reply: str, key: str) -> None:
        diary.note(f"{key} is {reply}")

    ask.enqueue("a")
    ask.enqueue("b")
    queue.run_for("9m")
    assert queue.counts("default").waiting == 2
    diary.app.reply("default", "a", "yes")
    queue.drain()
    assert diary.lines[2:] == [("a is yes", 9 * MINUTE)]
    assert queue.counts("default").dead == 1
    assert queue.now == START + 10 * MINUTE


def test_rate_limits_hold_in_virtual_time(diary: Diary, queue: VirtualQueue) -> None:
    rate = headway.Rate("slow", count=1, period_ms=60_000)
    diary.app.configure(headway.QueueConfig(name="q", limits=(rate,)))

    @diary.app.job(queue="q")
    def work() -> None:
        diary.note("work")

    work.enqueue_many([(), (), ()])
    queue.drain()
    assert [at for _, at in diary.lines] == [timedelta(), MINUTE, 2 * MINUTE]


def test_jobs_that_enqueue_jobs_go_on_at_their_time(
    diary: Diary, queue: VirtualQueue
) -> None:
    @diary.app.job
    async def step(number: int) -> None:
        diary.note(str(number))
        if number < 3:
            await step.options(delay="1h").aenqueue(number + 1)

    @diary.app.job(kind="sync_step")
    def sync_step(number: int) -> None:
        step.enqueue(number)

    sync_step.enqueue(1)
    queue.drain()
    assert diary.lines == [
        ("1", timedelta()),
        ("2", timedelta(hours=1)),
        ("3", timedelta(hours=2)),
    ]


def test_drain_says_what_is_left(diary: Diary, queue: VirtualQueue) -> None:
    @diary.app.job(queue="q")
    def work() -> None:
        diary.note("work")

    work.options(delay="2d").enqueue()
    with pytest.raises(AssertionError, match=r"left after 1d.*'scheduled': 1"):
        queue.drain(within="1d")
    queue.verbs.pause("q")
    with pytest.raises(AssertionError, match=r"left after 3d.*'ready': 1"):
        queue.drain(within="3d")
    assert diary.lines == []


def test_it_can_be_drained_under_a_running_loop(
    diary: Diary, queue: VirtualQueue
) -> None:
    @diary.app.job
    def work() -> None:
        diary.note("work")

    async def main() -> None:
        await work.options(delay="1h").aenqueue()
        queue.drain()

    asyncio.run(main())
    assert diary.lines == [("work", timedelta(hours=1))]


def test_time_starts_now_and_needs_a_zone() -> None:
    app = headway.App("memory:")
    before = datetime.fromtimestamp(0, UTC)
    with testing.virtual_time(app) as queue:
        assert queue.now > before
        with pytest.raises(BadValue):
            queue.run_until(datetime(2030, 1, 1))  # noqa: DTZ001
        at = queue.now
        queue.run_for(0)
        assert queue.now == at
    with (
        pytest.raises(BadValue),
        testing.virtual_time(app, start=datetime(2030, 1, 1)),  # noqa: DTZ001
    ):
        raise AssertionError


class Marking(Middleware):
    def __init__(self, marks: list[str]) -> None:
        self._marks = marks

    def run(self, job: Leased) -> Iterator[None]:
        self._marks.append(f"before {job.kind} {headway.current_job().id}")
        yield
        self._marks.append("after")


class AsyncMarking(Middleware):
    def __init__(self, marks: list[str]) -> None:
        self._marks = marks

    async def run(self, job: Leased) -> Any:
        await asyncio.sleep(0)
        self._marks.append("awaited")
        yield


@pytest.mark.parametrize("has_async", [False, True])
def test_inline_jobs_pass_the_hooks_and_know_their_job(has_async: bool) -> None:
    app = headway.App("memory:")
    marks: list[str] = []
    app.use(Marking(marks))
    if has_async:
        app.use(AsyncMarking(marks))

    @app.job
    def work() -> None:
        marks.append(headway.current_job().kind)

    @app.job
    async def fail() -> None:
        raise KeyError("inside")

    with testing.inline(app):
        job = work.enqueue()
        with pytest.raises(KeyError, match="inside"):
            fail.enqueue()
    with pytest.raises(LookupError):
        headway.current_job()
    awaited = ["awaited"] if has_async else []
    assert marks[: 3 + len(awaited)] == [
        f"before work {job}",
        *awaited,
        "work",
        "after",
    ]
