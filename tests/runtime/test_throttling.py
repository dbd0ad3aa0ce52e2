"""Throttlers in real processes: their verdicts, their failures, and what runs meanwhile."""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import headway
from headway.core.config import FailMode
from headway.core.errors import BadValue
from headway.runtime import throttler
from headway.runtime.embedded import Headway
from headway.runtime.views import LeasedJob

HERE = "tests.runtime.throttlers"
PATIENCE_S = 60.0
WAIT = "60s"


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed is asked again at once."""
    monkeypatch.setattr(throttler, "RETRY_MS", 1)
    monkeypatch.setattr(throttler, "AGAIN_S", 0.001)
    monkeypatch.setattr(throttler, "AGAIN_MAX_S", 0.01)


Opened = Callable[..., Headway]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Opens the same file with a throttler, once or again."""
    queues: list[Headway] = []

    def make(
        name: str = "by_kind",
        *,
        place: str = HERE,
        timeout: str = "30s",
        **rules: object,
    ) -> Headway:
        while queues:
            queues.pop().close()
        places = {"q": f"{place}:{name}"} if name else None
        queue = headway.open(
            tmp_path / "jobs.db", throttlers=places, throttler_timeout=timeout
        )
        queues.append(queue)
        queue.configure(headway.QueueConfig(name="q", **rules))  # type: ignore[arg-type]
        return queue

    yield make
    while queues:
        queues.pop().close()


def put(queue: Headway, *kinds: str, payload: object = "", tenant: str = "") -> None:
    """Each kind is a tenant of its own, unless one is named."""
    for kind in kinds:
        body = str(payload).encode()
        queue.enqueue("q", body, kind=kind, tenant=tenant or kind)


def started(queue: Headway, count: int) -> list[str]:
    """The kinds of so many jobs, as they start; they are done then."""
    found: list[str] = []
    until_s = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < until_s:
        for job in queue.lease("q", most=10, wait=WAIT):
            found.append(job.spec.kind)
            queue.ack(job.token)
    return found


def until(look: Callable[[], bool]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not look():
        assert time.monotonic() < until_s, look


def texts(queue: Headway, seq: int) -> str:
    return " ".join(reason.text for reason in queue.why(seq).reasons)


def test_every_verdict_does_what_it_says(opened: Opened) -> None:
    queue = opened()
    put(queue, "start", "class", "later", "past", "refuse")
    assert sorted(started(queue, 4)) == ["class", "later", "past", "start"]
    (dead,) = queue.operate.dead("q").jobs
    assert (dead.spec.kind, dead.errors[-1].reason) == ("refuse", "refused")
    assert dead.errors[-1].text == "refuse owes us money"
    (told,) = queue.measure().throttlers
    assert told.verdicts == {"start": 4, "later": 2, "refuse": 1}
    assert told.errors == {}


def test_closed_a_job_waits_while_its_throttler_raises(
    opened: Opened, tmp_path: Path
) -> None:
    queue = opened()
    put(queue, "raise", payload=tmp_path)
    put(queue, "behind", tenant="raise")
    with ThreadPoolExecutor() as threads:
        asked = threads.submit(queue.lease, "q", most=1, wait=WAIT)
        text = (
            "the throttler of its queue has no verdict on it: ValueError: there is no"
        )
        until(lambda: text in texts(queue, 1) or "throttler failed" in texts(queue, 1))
        (tmp_path / "good").touch()
        (first,) = asked.result(PATIENCE_S)
        queue.ack(first.token)
    assert {first.spec.kind, *started(queue, 1)} == {"raise", "behind"}
    (told,) = queue.measure().throttlers
    assert told.errors["raised"] >= 1


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("raise", "raised"),
        ("none", "raised"),
        ("exit", "ended"),
        ("hang", "too slow"),
    ],
)
def test_open_a_job_starts_although_its_throttler_fails(
    opened: Opened, tmp_path: Path, kind: str, error: str
) -> None:
    timeout = "200ms" if kind == "hang" else "30s"
    queue = opened(timeout=timeout, throttler_fails=FailMode.OPEN)
    put(queue, kind, "start", payload=tmp_path)
    assert sorted(started(queue, 2)) == sorted([kind, "start"])
    (told,) = queue.measure().throttlers
    assert told.errors[error] >= 1


def test_one_that_hangs_is_killed_and_others_go_on(
    opened: Opened, tmp_path: Path
) -> None:
    queue = opened(timeout="200ms")
    put(queue, "hang", "start", payload=tmp_path)
    assert started(queue, 1) == ["start"]
    until(lambda: "longer than 0.2 s" in texts(queue, 1))
    pid = int((tmp_path / "pid").read_text())
    queue.cancel(1)
    until(lambda: not Path(f"/proc/{pid}").exists())


def test_one_that_ends_is_started_again(opened: Opened) -> None:
    queue = opened()
    put(queue, "exit", "start")
    assert started(queue, 1) == ["start"]
    until(lambda: "ended with status 7" in texts(queue, 1))
    put(queue, "another")
    assert started(queue, 1) == ["another"]


def test_a_job_on_which_it_always_fails_makes_room_for_those_behind_it(
    opened: Opened,
) -> None:
    queue = opened()
    put(queue, "none", tenant="t")
    put(queue, "start", tenant="t")
    assert started(queue, 1) == ["start"]
    assert "its throttler failed, answered None: not Start" in texts(queue, 1)
    assert queue.counts("q").scheduled == 1


def test_what_runs_is_never_older_than_its_own_verdicts(opened: Opened) -> None:
    """A flood: a job of each of 150 tenants, of which three may run at once."""
    queue = opened("at_most_three")
    specs = [
        headway.spec(
            b"", tenant=f"t{n}", kind=f"k{n % 3}", labels={"region": f"{n % 5}"}
        )
        for n in range(150)
    ]
    queue.enqueue_many("q", specs)
    running: list[LeasedJob] = []
    done = 0
    while done < 150:
        running += queue.lease("q", most=10, wait=WAIT if not running else "0s")
        assert len(running) <= 3
        queue.ack(running.pop(0).token)
        done += 1
    assert queue.measure().throttlers[0].errors == {}


def test_it_sees_labels_limits_and_other_queues(opened: Opened) -> None:
    queue = opened("one_of_each", limits=(headway.Concurrency("wide", 9),))
    queue.configure(headway.QueueConfig(name="closing"))
    queue.enqueue("closing", b"")
    (closing,) = queue.lease("closing")
    for region in ("east", "east", "west"):
        queue.enqueue("q", b"", tenant=region, labels={"region": region})
    with ThreadPoolExecutor() as threads:
        asked = threads.submit(queue.lease, "q", most=3, wait=WAIT)
        until(lambda: queue.measure().throttlers != ())
        assert not asked.done()
        queue.ack(closing.token)
        running = asked.result(PATIENCE_S)
    while len(running) < 2:
        running += queue.lease("q", most=3, wait=WAIT)
    regions = [(job.spec.labels or {})["region"] for job in running]
    assert sorted(regions) == ["east", "west"]
    assert queue.measure().throttlers[0].errors == {}


def test_a_verdict_on_a_job_that_is_gone_changes_nothing(
    opened: Opened, tmp_path: Path
) -> None:
    queue = opened()
    put(queue, "gate", payload=tmp_path)
    put(queue, "start", tenant="gate")
    with ThreadPoolExecutor() as threads:
        asked = threads.submit(queue.lease, "q", most=1, wait=WAIT)
        until((tmp_path / "asked").exists)
        queue.cancel(1)
        (tmp_path / "asked").write_text("go on")
        (job,) = asked.result(PATIENCE_S)
    assert job.spec.kind == "start"


def test_it_is_asked_again_after_a_restart_and_never_without_it(
    opened: Opened, tmp_path: Path
) -> None:
    queue = opened()
    put(queue, "refuse", "raise", payload=tmp_path)
    queue = opened()
    # One that comes too late for its millisecond asks nobody.
    until(lambda: not queue.lease("q", wait="1ms") and queue.counts("q").dead == 1)
    # The next owner has no throttler: what waited for its verdict waits no more.
    assert started(opened(""), 1) == ["raise"]


def test_whoever_configures_a_queue_can_neither_give_nor_take_a_throttler(
    opened: Opened,
) -> None:
    queue = opened("", has_throttler=True)
    put(queue, "refuse")
    assert started(queue, 1) == ["refuse"]
    queue = opened(has_throttler=False)
    put(queue, "refuse")
    assert queue.lease("q", wait="500ms") == []
    until(lambda: queue.counts("q").dead == 1)


def test_what_it_prints_without_end_is_read_and_not_logged(
    opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    queue = opened()
    put(queue, "flood")
    assert started(queue, 1) == ["flood"]
    opened("")
    lines = [x for x in caplog.records if x.getMessage().endswith("a line of many")]
    assert 1 <= len(lines) <= throttler.LOG_MAX


def test_a_module_that_is_gone_is_no_fault_of_a_job(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loaded once at the start; what is started again may find it gone."""
    module = tmp_path / "vanishing.py"
    module.write_text(f"from {HERE} import by_kind\n")
    monkeypatch.syspath_prepend(tmp_path)
    queue = opened("by_kind", place="vanishing")
    put(queue, "exit", tenant="t")
    assert queue.lease("q", wait="500ms") == []
    until(lambda: "status 7" in texts(queue, 1))
    module.unlink()
    put(queue, "start", tenant="other")
    assert queue.lease("q", wait="500ms") == []
    until(lambda: "there is no module vanishing" in texts(queue, 2))
    until(lambda: queue.measure().throttlers[0].errors.get("not loaded", 0) > 5)
    assert queue.counts("q").scheduled <= 1  # what it ended on may be put off
    module.write_text(f"from {HERE} import by_kind\n")
    assert started(queue, 1) == ["start"]


def test_a_process_ends_with_its_owner(opened: Opened, tmp_path: Path) -> None:
    queue = opened()
    put(queue, "hang", payload=tmp_path)
    assert queue.lease("q", wait="500ms") == []
    until(lambda: (tmp_path / "pid").exists() and bool((tmp_path / "pid").read_text()))
    opened("")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    ("place", "rule"),
    [
        ("nothing", "is named as MODULE:CALLABLE"),
        ("", "is named as MODULE:CALLABLE"),
        ("a:b:c", "is named as MODULE:CALLABLE"),
        ("os; import x:y", "is named as MODULE:CALLABLE"),
        ("__main__:main", "another process can import"),
        ("no_such_module:f", "there is no module no_such_module"),
        (f"{HERE}.inner:f", f"there is no module {HERE}.inner"),
        (f"{HERE}:nothing", "there is no nothing"),
        (f"{HERE}:number", "can't be called"),
        (f"{HERE}:asynchronous", "is async"),
    ],
)
def test_a_bad_name_is_refused_before_anything_is_opened(
    place: str, rule: str, tmp_path: Path
) -> None:
    with pytest.raises(BadValue, match="throttler = ") as refused:
        headway.open(tmp_path / "jobs.db", throttlers={"q": place})
    assert rule in str(refused.value)
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_an_app_has_throttlers_only_where_it_is_the_owner() -> None:
    with pytest.raises(BadValue, match="named where it is started"):
        headway.App("http://127.0.0.1:1", throttlers={"q": f"{HERE}:by_kind"})
    app = headway.App("memory:", throttlers={"q": f"{HERE}:by_kind"})

    @app.job(queue="q", result="1m")
    def start() -> str:
        return "started"

    job = start.enqueue()
    app.work(until_empty=True)
    assert job.result(WAIT) == "started"
    app.close()
