"""Jobs on executors: they end as with any worker, whoever dies on the way."""

import json
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from headway.cli.main import headway
from headway.client import calls
from headway.client.blocking import Client
from headway.core.errors import BadValue
from headway.spark.errors import ClaimsBusy, ClaimUnread, NoRetries, PipelineError
from headway.spark.fleet.claims import Claim, Claims
from headway.spark.fleet.driver import Fleet, FleetSettings, Stop, _tries
from headway.spark.fleet.port import Counted
from headway.spark.fleet.task import Errand, run_share
from headway.worker.ports import Ports
from tests.server.process import Served, command
from tests.spark.fleet_app import app
from tests.worker.places import until, working

pytestmark = pytest.mark.xdist_group("spark")
PATIENCE_S = 240.0
PLACE = "tests.spark.fleet_app:app"
AT_ONCE = {"type": "fixed", "delay": 0}


def job(kind: str, notes: Path, number: int, **more: Any) -> dict[str, Any]:
    payload = {"notes": str(notes), "number": number, **more}
    return {"kind": kind, "payload": payload, "attempts": 2, "retry": AT_ONCE}


def enqueue(served: Served, jobs: list[dict[str, Any]]) -> None:
    for first in range(0, len(jobs), 1_000):
        body = jobs[first : first + 1_000]
        assert served.ask("POST", "/v1/queues/bulk/jobs", body).status == 201


def fleet(spark: Any, served: Served, claims: Path, **more: Any) -> Fleet:
    settings = FleetSettings(app=PLACE, queue="bulk", url=served.address, **more)
    return Fleet(spark, app, Claims(str(claims), "bulk"), settings, print)


def counts(served: Served) -> dict[str, int]:
    served.hang_up()
    found: dict[str, int] = served.ask("GET", "/v1/queues/bulk").json["counts"]
    return found


def left(served: Served) -> int:
    return sum(count for state, count in counts(served).items() if state != "dead")


def dead(served: Served) -> list[tuple[str, int, str, str]]:
    """Kind, attempt, reason and the first line of each that died."""
    found = []
    cursor = ""
    while True:
        page = served.ask(
            "GET", f"/v1/queues/bulk/dead?limit=1000&cursor={cursor}"
        ).json
        for one in page["jobs"]:
            last = one["errors"][-1]
            line = last["text"].partition("\n")[0]
            found.append((one["kind"], last["attempt"], last["reason"], line))
        cursor = page["next"]
        if not cursor:
            return sorted(found)


def happened(spark: Any, served: Served, what: str) -> Counter[int]:
    """How often it happened, by job."""
    told = spark.read.format("headway").option("url", served.address).load()
    return Counter(row.job for row in told.where(f"type = '{what}'").collect())


def mixed(notes: Path, count: int) -> list[dict[str, Any]]:
    kinds = ["plain"] * 5 + ["awaited"] * 3 + ["failing", "buried"]
    return [job(kinds[number % 10], notes, number) for number in range(count)]


def until_driven(driver: "subprocess.Popen[Any]", holds: Callable[[], bool]) -> None:
    """A driver takes its time to start."""
    until_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert driver.poll() is None, driver.communicate()
        assert time.monotonic() < until_s, "it does not come about"
        threading.Event().wait(0.05)


def noted(notes: Path) -> Counter[str]:
    return Counter(notes.read_text().splitlines()) if notes.exists() else Counter()


def check_ends(spark: Any, served: Served, tmp_path: Path, count: int) -> None:
    """All jobs are done or dead, each of them once."""
    notes = tmp_path / "notes"
    enqueue(served, mixed(notes, count))
    made = fleet(spark, served, tmp_path / "claims", batch=1_000)
    made.run(Stop())
    assert left(served) == 0
    tenth = count // 10
    assert made.counted == Counted(done=8 * tenth, failed=3 * tenth)
    assert made.claimed == made.counted.done + made.counted.failed
    wanted = {str(n): 2 if n % 10 == 8 else 1 for n in range(count) if n % 10 != 9}
    assert noted(notes) == wanted
    acks = happened(spark, served, "ack")
    assert len(acks) == acks.total() == 8 * tenth


def test_jobs_end_as_with_any_worker(
    spark: Any, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_ends(spark, served, tmp_path, 2_000)
    other = Served(tmp_path / "other")
    try:
        enqueue(other, mixed(tmp_path / "other-notes", 2_000))
        monkeypatch.setattr(app, "ports", Ports(other.address))
        with working(app, queues=("bulk",), concurrency=20):
            until(lambda: left(other) == 0)
        assert dead(other) == dead(served)
    finally:
        other.stop()


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_fifty_thousand_jobs_end(spark: Any, served: Served, tmp_path: Path) -> None:
    check_ends(spark, served, tmp_path, 50_000)
    assert counts(served)["dead"] == 10_000


def test_a_task_that_dies_is_tried_again_and_nothing_is_acked_twice(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    jobs = [job("plain", notes, number) for number in range(60)]
    jobs.insert(30, job("deadly", notes, 60, once=str(tmp_path / "once")))
    enqueue(served, jobs)
    fleet(spark, served, tmp_path / "claims", share=20).run(Stop())
    assert left(served) == 0
    assert dead(served) == []
    assert noted(notes)["60 deadly"] == 2
    assert set(map(str, range(60))) <= set(noted(notes))
    for what in ("lease", "ack"):
        found = happened(spark, served, what)
        assert len(found) == found.total() == 61, what


def test_a_handler_that_always_kills_its_process_fails_alone(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    jobs = [job("plain", notes, number) for number in range(20)]
    jobs.insert(10, job("deadly", notes, 20) | {"attempts": 1})
    enqueue(served, jobs)
    fleet(spark, served, tmp_path / "claims", share=40, concurrency=2).run(Stop())
    assert left(served) == 0
    text = "its process died: signal SIGKILL"
    assert dead(served) == [("deadly", 1, "failed", text)]
    assert set(map(str, range(20))) <= set(noted(notes))


@pytest.mark.long
def test_a_driver_that_was_killed_is_followed_by_one_that_finishes(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    notes, gate, claims = tmp_path / "notes", tmp_path / "gate", tmp_path / "claims"
    enqueue(served, [job("gated", notes, n, gate=str(gate)) for n in range(30)])
    options = ["--queue", "bulk", "--server", served.address, "--claims", str(claims)]
    options += ["--master", "local[2,3]", "--concurrency", "4", "--quiet"]
    driver = subprocess.Popen(
        command("spark-worker", PLACE, *options), stderr=subprocess.PIPE
    )
    try:
        until_driven(driver, lambda: noted(notes).total() >= 4)
    finally:
        driver.kill()
        driver.communicate()
    assert counts(served)["leased"] == 30
    gate.touch()
    fleet(spark, served, claims).run(Stop())
    assert left(served) == 0
    assert set(noted(notes)) >= {f"{number} ended" for number in range(30)}
    for what in ("lease", "ack"):
        found = happened(spark, served, what)
        assert len(found) == found.total() == 30, what


def test_a_fleet_that_is_stopped_gives_back_what_it_has_not_done(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    notes, gate = tmp_path / "notes", tmp_path / "gate"
    enqueue(served, [job("gated", notes, n, gate=str(gate)) for n in range(10)])
    stop = Stop()
    made = fleet(spark, served, tmp_path / "claims", grace_ms=0, every_s=0.1)
    thread = threading.Thread(target=made.run, args=(stop,))
    thread.start()
    until(lambda: noted(notes).total() > 0)
    stop()
    thread.join(60)
    assert not thread.is_alive()
    assert counts(served)["ready"] == 10
    assert Claims(str(tmp_path / "claims"), "bulk").last().jobs == []
    gate.touch()
    fleet(spark, served, tmp_path / "claims").run(Stop())
    assert left(served) == 0


def test_a_claim_that_no_executor_can_run_is_given_back(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    enqueue(served, [job("plain", tmp_path, number) for number in range(5)])
    nowhere = "tests.spark.nowhere:app"
    claims = Claims(str(tmp_path / "claims"), "bulk")
    settings = FleetSettings(app=nowhere, queue="bulk", url=served.address)
    with pytest.raises(PipelineError, match="an executor can't load"):
        Fleet(spark, app, claims, settings, print).run(Stop())
    assert counts(served)["ready"] == 5
    assert claims.last() == Claim(number=1, queue="bulk")


def test_a_job_that_waits_goes_on_with_its_reply(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    enqueue(served, [job("asking", notes, number) for number in range(3)])
    made = fleet(spark, served, tmp_path / "claims")
    made.run(Stop())
    assert made.counted == Counted(waiting=3)
    served.hang_up()
    for number in range(3):
        path = f"/v1/queues/bulk/replies/key-{number}"
        assert served.ask("POST", path, {"payload": "yes"}).status == 200
    made.run(Stop())
    assert left(served) == 0
    assert noted(notes) == {f"{number} yes": 1 for number in range(3)}


def test_a_task_leaves_alone_what_is_settled_or_cancelled(
    served: Served, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    enqueue(served, [job("plain", notes, number) for number in range(5)])
    client = Client(served.address)
    jobs = client.ask(calls.lease(["bulk"], 5, lease_ms=60_000))
    client.ask(calls.ack([jobs[0].token]))
    client.ask(calls.release([jobs[1].token]))
    assert served.ask("DELETE", f"/v1/jobs/{jobs[2].id}").status in (200, 202)
    client.close()
    errand = Errand(app=PLACE, queue="bulk", url=served.address, tries=3)
    assert run_share(errand, jobs, 0) == Counted(done=2, failed=1, gone=2)
    assert noted(notes).total() == 2
    assert counts(served) == {**dict.fromkeys(counts(served), 0), "ready": 1}


def test_one_driver_at_a_time_works_on_claims(tmp_path: Path) -> None:
    claims = Claims(str(tmp_path), "bulk")
    with (
        claims,
        pytest.raises(ClaimsBusy, match="another driver"),
        Claims(str(tmp_path), "bulk"),
    ):
        pass
    with Claims(str(tmp_path), "bulk"), Claims(str(tmp_path), "other"):
        pass


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_claim_is_read_as_it_was_written(
    served: Served, tmp_path: Path, scheme: str
) -> None:
    enqueue(served, [job("plain", tmp_path, number) for number in range(3)])
    client = Client(served.address)
    jobs = client.ask(calls.lease(["bulk"], 3))
    client.close()
    claims = Claims(f"{scheme}{tmp_path}/claims", "bulk")
    with claims:
        assert claims.last() == Claim(queue="bulk")
        claim = Claim(number=7, queue="bulk", worker="w", jobs=jobs)
        claims.open(claim)
        found = claims.last()
        assert [one.token for one in found.jobs] == [one.token for one in jobs]
        assert json.loads(bytes(found.jobs[0].payload))["number"] == 0  # type: ignore[arg-type]
        claims.close(claim)
        assert claims.last() == Claim(number=7, queue="bulk")


def test_a_claim_of_a_newer_version_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    claims = Claims(str(tmp_path), "bulk")
    with claims:
        claims.open(Claim(number=1, queue="bulk", format=99))
        with pytest.raises(ClaimUnread, match="newer version"):
            claims.last()
        (tmp_path / "bulk" / "claim.json").write_text('{"number": ')
        with pytest.raises(ClaimUnread, match="can't be read"):
            claims.last()
    assert (tmp_path / "bulk" / "claim.json").stat().st_mode & 0o077 == 0
    with pytest.raises(BadValue, match="no name of a queue"):
        Claims(str(tmp_path), "../bulk")


@pytest.mark.parametrize(
    ("master", "tries"),
    [("local[2,3]", 3), ("local[*, 5]", 5), ("yarn", 4), ("spark://h:7077", 4)],
)
def test_how_often_spark_tries_is_known(master: str, tries: int) -> None:
    conf = SimpleNamespace(get=lambda _, default: default)
    context = SimpleNamespace(master=master, getConf=lambda: conf)
    spark: Any = SimpleNamespace(sparkContext=context)
    assert _tries(spark) == tries


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2]", "local[2,1]"])
def test_a_spark_that_never_tries_again_is_refused(master: str) -> None:
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master=master))
    with pytest.raises(NoRetries, match="not tried again"):
        _tries(spark)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ["tests.spark.fleet_app:app", "--once", "--every", "1s"],
            "exclude each other",
        ),
        (["tests.spark.fleet_app:app", "--lease", "5ms"], "at least a second"),
        (["tests.spark.fleet_app:none"], "there is no headway.App of this name"),
        (["tests.spark.fleet_app:here"], "name a server"),
    ],
)
def test_what_can_not_work_is_refused_before_spark_starts(
    options: list[str], told: str
) -> None:
    ended = CliRunner().invoke(
        headway,
        ["spark-worker", *options, "--queue", "bulk"],
        env={"HEADWAY_SERVER": None, "HEADWAY_TOKEN": None},
    )
    assert ended.exit_code == 2
    assert told in ended.output
    assert "starting Spark" not in ended.output


@pytest.mark.long
def test_a_driver_ends_well_when_it_is_told_to(served: Served, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    enqueue(served, [job("plain", notes, number) for number in range(5)])
    options = ["--queue", "bulk", "--server", served.address]
    options += ["--claims", str(tmp_path / "claims"), "--master", "local[1,2]"]
    driver = subprocess.Popen(
        command("spark-worker", PLACE, *options),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until_driven(driver, lambda: noted(notes).total() == 5)
        driver.send_signal(signal.SIGTERM)
        said, told = driver.communicate(timeout=120)
    finally:
        driver.kill()
    assert driver.returncode == 0, told
    assert "claim 1: 5 claimed, 5 done" in told
    assert said.startswith("bulk: 5 claimed, 5 done")
    assert left(served) == 0
