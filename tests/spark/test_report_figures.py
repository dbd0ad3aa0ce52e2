"""Figures: what the tables say, added up, cut to a span, and never more than fits."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headway.cli.main import headway as command
from headway.spark.lake.lake import Lake
from headway.spark.lake.published import Published
from headway.spark.report.figures import Figures, gather
from headway.spark.report.page import page
from headway.spark.report.read.promises import Kept
from headway.spark.report.source import HOUR_S, Quantiles, Span
from tests.spark.figures import AT_S
from tests.spark.test_report_page import Parsed

pytestmark = pytest.mark.xdist_group("spark")

HOUR = HOUR_S
DAY = 24 * HOUR


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(AT_S + seconds, tz=UTC)


class Made:
    """Tables made by hand; sketches are given as lists of values."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._frames: dict[str, Any] = {}

    def table(self, name: str, schema: str, *rows: tuple[Any, ...]) -> None:
        from pyspark.sql import functions as F

        fields = [one.strip().split(" ") for one in schema.split(",")]
        plain = [
            (field, "array<bigint>" if kind == "sketch" else kind)
            for field, kind in fields
        ]
        told = ", ".join(f"{field} {kind}" for field, kind in plain)
        frame = self._spark.createDataFrame(list(rows), told)
        frame = frame.withColumn("row", F.monotonically_increasing_id())
        for field, kind in fields:
            if kind != "sketch":
                continue
            values = frame.select("row", F.explode_outer(field).alias("value"))
            made = values.groupBy("row").agg(
                F.kll_sketch_agg_bigint("value").alias(field)
            )
            frame = frame.drop(field).join(made, "row")
        when = next(field for field, kind in fields if kind in {"timestamp", "date"})
        self._frames[name] = frame.drop("row").withColumn("day", F.to_date(when))

    def figures(self, span: Span | None = None, until: int = DAY) -> Figures:
        record = Published(batch=2, at_ms=(AT_S + until) * 1_000, events=99)
        return gather(self._frames.get, record, span or Span())


@pytest.fixture
def made(spark: Any) -> Made:
    return Made(spark)


def test_a_backlog_past_its_time_is_missed_and_one_to_come_is_not(made: Made) -> None:
    made.table(
        "gold.promises",
        "minute timestamp, queue string, slo_ms bigint, due bigint, met bigint, "
        "late bigint, withdrawn bigint",
        (at(0), "mail", 5_000, 10, 7, 1, 1),
        (at(60), "mail", 5_000, 4, 4, 0, 0),
        (at(0), "mail", 60_000, 3, 3, 0, 0),
        (at(300), "mail", 5_000, 6, 2, 0, 0),
        (at(3 * DAY), "later", 5_000, 50, 0, 0, 0),
    )
    told = made.figures(until=300).promises
    assert told is not None
    assert [(one.slo_ms, one.kept) for one in told.lanes] == [
        (5_000, Kept(13, 1, 1, 1)),
        (60_000, Kept(3)),
    ]
    assert told.total == Kept(16, 1, 1, 1)
    assert (told.lanes_all, told.lanes_missing) == (2, 1)
    (spell,) = told.spells
    assert (spell.since_s, spell.until_s) == (AT_S, AT_S + 60)
    assert told.trends["mail", 5_000][AT_S + 300] == Kept(2)
    hour = (at(0).weekday()) * 24 + at(0).hour
    assert told.weekly == {hour: told.total}


def test_a_span_is_cut_to_the_minute(made: Made) -> None:
    schema = (
        "minute timestamp, queue string, slo_ms bigint, due bigint, met bigint, "
        "late bigint, withdrawn bigint"
    )
    rows = [(at(60 * one), "mail", 5_000, 1, 1, 0, 0) for one in range(10)]
    made.table("gold.promises", schema, *rows)
    told = made.figures(Span(AT_S + 120, AT_S + 300)).promises
    assert told is not None
    assert told.total == Kept(3)
    assert told.buckets.starts() == [AT_S + 120, AT_S + 180, AT_S + 240]
    nothing = made.figures(Span(AT_S + DAY, None)).promises
    assert nothing is not None
    assert nothing.lanes == []


def test_quantiles_come_of_all_sketches_and_empty_ones_do_no_harm(made: Made) -> None:
    made.table(
        "gold.waits",
        "minute timestamp, queue string, slo_ms bigint, starts bigint, wait_ms bigint, "
        "held_ms bigint, longest_ms bigint, wait_sketch sketch",
        (at(0), "mail", 5_000, 50, 1_275, 1, 50, list(range(1, 51))),
        (at(60), "mail", 5_000, 50, 3_775, 2, 100, list(range(51, 101))),
    )
    made.table(
        "gold.replies",
        "hour timestamp, queue string, partner string, waits bigint, replies bigint, "
        "early bigint, timeouts bigint, late bigint, repeated bigint, "
        "longest_ms bigint, answer_sketch sketch",
        (at(0), "mail", "bank", 2, 0, 0, 2, 0, 0, None, []),
        (at(0), "mail", "post", 1, 1, 0, 0, 0, 0, 70, [70]),
    )
    told = made.figures()
    assert told.waits is not None
    assert told.waits.lanes[0].quantiles == Quantiles(50, 95, 99)
    assert told.waits.trends["mail", 5_000][AT_S] == Quantiles(25, 48, 50)
    assert (told.waits.starts, told.waits.longest_ms) == (100, 100)
    assert told.replies is not None
    bank, post = told.replies
    assert (bank.partner, bank.timeouts, bank.quantiles) == ("bank", 2, None)
    assert post.quantiles == Quantiles(70, 70, 70)


def test_shares_are_those_of_the_queue_whoever_is_left_out(made: Made) -> None:
    schema = (
        "hour timestamp, queue string, tenant string, arrivals bigint, starts bigint, "
        "misses bigint, wait_ms bigint, run_ms bigint, weight double, "
        "entitled_share double"
    )
    others = [
        (at(0), "mail", f"t{one:02}", 1, 1, 0, 5, 1_000, 1.0, 0.01) for one in range(60)
    ]
    made.table(
        "gold.fairness",
        schema,
        (at(0), "mail", "acme", 9, 8, 2, 800, 30_000, 1.0, 0.5),
        (at(HOUR), "mail", "acme", 1, 1, 0, 0, 10_000, 2.0, 1.0),
        *others,
    )
    made.table(
        "gold.displacement",
        "hour timestamp, queue string, displaced string, displacing string, "
        "displaced_ms double",
        (at(0), "mail", "t00", "acme", 500.0),
        (at(HOUR), "mail", "t00", "acme", 700.0),
    )
    told = made.figures().tenants
    assert told is not None
    assert told.tenants_all == 61
    assert len(told.tenants) == 30
    first = told.tenants[0]
    assert (first.tenant, first.weight, first.run_ms) == ("acme", 2.0, 40_000)
    assert first.share == pytest.approx(0.4)
    assert first.entitled == pytest.approx((0.5 * 90_000 + 10_000) / 100_000)
    assert told.displaced is not None
    (pair,) = told.displaced
    assert (pair.ms, pair.hours, pair.worst_s) == (1_200.0, 2, AT_S + HOUR)
    assert told.evenness is None


def test_limits_are_told_by_how_long_they_were_full_and_who_held_them(
    made: Made,
) -> None:
    names = "minute timestamp, queue string, limit_name string, limit_value string, "
    made.table(
        "gold.limits",
        names + "capacity bigint, highest bigint, used_ms bigint, stops bigint, "
        "blocked_ms bigint, full_ms bigint",
        (at(0), "mail", "all", "", 2, 2, 120_000, 1, 60_000, 60_000),
        (at(60), "mail", "all", "", 2, 2, 60_000, 3, 20_000, 15_000),
        (at(0), "mail", "each", "acme", 9, 1, 60_000, 0, 0, 0),
        (at(0), "mail", "none", "", 0, 0, 0, 1, 60_000, 1_000),
    )
    made.table(
        "gold.limit_tenants",
        names + "tenant string, used_ms bigint, blocked_ms bigint",
        (at(0), "mail", "all", "", "acme", 90_000, 0),
        (at(0), "mail", "all", "", None, 30_000, 0),
        (at(0), "mail", "all", "", "globex", 0, 60_000),
        (at(60), "mail", "all", "", "acme", 60_000, 20_000),
    )
    told = made.figures().limits
    assert told is not None
    shown = [(one.limit_name, one.full_ms, one.used_share) for one in told.limits]
    assert shown == [
        ("all", 75_000, 0.75),
        ("none", 1_000, None),
        ("each", 0, 60_000 / 540_000),
    ]
    assert told.limits[0].worst_s == AT_S
    assert (told.limits_all, told.limits_full) == (3, 2)
    by_minute = {AT_S: 60_000, AT_S + 60: 15_000}
    assert told.trends["mail", "all", ""] == by_minute
    assert told.blocked is not None
    pairs = [(one.blocked, one.holder, one.ms) for one in told.blocked]
    assert pairs == [
        ("globex", "acme", 45_000),
        ("acme", "acme", 20_000),
        ("globex", None, 15_000),
    ]


def test_errors_that_kill_come_first_and_all_are_counted(made: Made) -> None:
    rows = [
        (at(0), "mail", "k", "retry", "failed", f"e{one:02}", 5, at(1), at(2), "s")
        for one in range(30)
    ]
    made.table(
        "gold.failures",
        "hour timestamp, queue string, kind string, what string, reason string, "
        "error string, failures bigint, first_at timestamp, last_at timestamp, "
        "sample string",
        *rows,
        (at(0), "mail", "k", "bury", "failed", "e29", 1, at(9), at(9), "s"),
        (at(0), "mail", "k", "expire", "expired", None, 2, at(3), at(4), None),
    )
    told = made.figures().failures
    assert told is not None
    assert (told.failures, told.dead, told.errors_all) == (153, 3, 31)
    assert len(told.errors) == 20
    assert [(one.error, one.dead) for one in told.errors[:2]] == [("", 2), ("e29", 1)]
    assert (told.errors[1].retries, told.errors[1].last_s) == (5, AT_S + 9)


def test_costs_schedules_and_advice_are_added_up(made: Made) -> None:
    made.table(
        "gold.costs",
        "at date, tenant string, jobs bigint, done bigint, attempts bigint, "
        "run_ms bigint, cost bigint",
        (at(0).date(), "acme", 3, 2, 4, 300, 30),
        (at(DAY).date(), "acme", 1, 1, 1, 100, 10),
        (at(0).date(), "globex", 1, 1, 1, 100, 5),
    )
    made.table(
        "gold.schedules",
        "at date, queue string, schedule string, ticks bigint, skipped bigint, "
        "tick_late_ms bigint, starts bigint, tick_latest_ms bigint, "
        "start_latest_ms bigint, start_late_sketch sketch",
        (at(0).date(), "mail", "nightly", 2, 1, 40, 1, 30, 90, [90]),
        (at(0).date(), "mail", "never", 1, 1, 5, 0, 5, None, []),
    )
    made.table(
        "gold.advice",
        "hour timestamp, queue string, busy_s double, workers bigint, reason string",
        (at(0), "mail", 1_800.0, 3, "few"),
        (at(HOUR), "mail", 3_600.0, 9, "many"),
    )
    told = made.figures()
    assert told.costs is not None
    assert [(one.tenant, one.cost, one.share) for one in told.costs.tenants] == [
        ("acme", 40, 0.8),
        ("globex", 5, 0.2),
    ]
    assert told.schedules is not None
    by_name = {one.schedule: one for one in told.schedules}
    assert by_name["nightly"].quantiles == Quantiles(90, 90, 90)
    assert by_name["never"].quantiles is None
    assert told.capacity is not None
    (need,) = told.capacity.queues
    assert (need.workers, need.reason, need.worst_s) == (9, "many", AT_S + HOUR)
    assert need.by_bucket == {AT_S: 3, AT_S + HOUR: 9}
    Parsed(page(told))


def test_no_table_that_a_lake_has_is_passed_over(spark: Any, tmp_path: Path) -> None:
    tables = Lake(str(tmp_path)).tables

    def read(name: str) -> Any:
        return tables[name].empty(spark) if name in tables else None

    told = gather(read, Published(batch=1, at_ms=AT_S * 1_000), Span())
    asked = {
        "gold.promises": told.promises,
        "gold.waits": told.waits,
        "gold.runs": told.runs,
        "gold.load": told.arrivals,
        "gold.fairness": told.tenants,
        "gold.fairness_index": told.tenants and told.tenants.evenness,
        "gold.displacement": told.tenants and told.tenants.displaced,
        "gold.costs": told.costs,
        "gold.failures": told.failures,
        "gold.schedules": told.schedules,
        "gold.replies": told.replies,
        "gold.advice": told.capacity,
    }
    for name, found in asked.items():
        assert (found is not None) == (name in tables), name
    assert Parsed(page(told)).named("table") == []


def test_tables_of_another_time_are_left_out_and_not_guessed(made: Made) -> None:
    made.table("gold.load", "hour timestamp, arrived bigint", (at(0), 1))
    told = made.figures()
    assert told.arrivals is None
    assert told.promises is None
    Parsed(page(told))


@pytest.mark.parametrize("is_there", [True, False])
def test_a_lake_without_tables_is_refused_in_a_line(
    tmp_path: Path, *, is_there: bool
) -> None:
    lake = tmp_path / "lake"
    if is_there:
        lake.mkdir()
    out = tmp_path / "report.html"
    found = invoke(["report", "--lake", str(lake), "--out", str(out)])
    assert found.exit_code != 0
    assert found.output.strip() == f"headway: nothing is published in {lake}"
    assert not out.exists()


def test_options_that_can_not_be_are_refused(tmp_path: Path) -> None:
    out = str(tmp_path / "none" / "report.html")
    found = invoke(["report", "--lake", str(tmp_path), "--out", out])
    assert found.exit_code != 0
    assert "there is no such folder" in found.output


def invoke(arguments: list[str]) -> Any:
    return CliRunner().invoke(command, arguments)
