"""Pieces of gold that traffic of some minutes can not show."""

import random
from pathlib import Path
from typing import Any

import pytest

from headway.search.error_lines import first_line
from headway.spark.columns import EVENTS, spark_schema
from headway.spark.errors_sql import error_line
from headway.spark.lake.lake import Lake
from headway.spark.pipeline.batch import Batch
from tests.spark.conftest import rows_of
from tests.spark.work import staged

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(1_200)]

HOUR_MS = 3_600_000
START_MS = 1_800_000_000_000 // (24 * HOUR_MS) * (24 * HOUR_MS) + 22 * HOUR_MS
PIECES = (
    *("a", "f", "g", "Z", "x", "0x", "0X1f", "0x12", "12", "7", "deadbeef", "DEADBEE1"),
    *("123456789", "12ab34cd", "cafe0001", "00000000", "-", ".", ":", "_", "'", "<"),
    *("3fa85f64-5717-4562-b3fc-2c963f66afa6", "3FA85F64-5717-4562-B3FC-2C963F66AFA6"),
    *(" ", "  ", "\t", "\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x1f"),
    *("\x85", "\xa0", "\u2028", "\u2029", "\u2003", "\u3000", "\u200b", "é", "٣", "😀"),
    *("$1", "\\", "<uuid>", "(?", "x" * 150, "9" * 60),
)


def text(draw: random.Random) -> str:
    most = 400 if draw.random() < 0.05 else 9
    return "".join(draw.choice(PIECES) for _ in range(draw.randint(0, most)))


def test_errors_are_told_apart_as_the_search_does_it(spark: Any) -> None:
    from pyspark.sql import functions as F

    draw = random.Random(7)
    texts = sorted({text(draw) for _ in range(6_000)})
    frame = spark.createDataFrame([(one,) for one in texts], "text string")
    lines = frame.select("text", error_line(F.col("text")).alias("line")).collect()
    differ = [
        (row["text"], row["line"], first_line(row["text"]))
        for row in lines
        if row["line"] != first_line(row["text"])
    ]
    assert differ == []
    assert len({row["line"] for row in lines}) > 2_000


def events_of(spark: Any, first: int, told: list[dict[str, Any]]) -> Any:
    """Events of one partition, numbered on."""
    rows = [
        tuple({"partition": "p1", "event": number, **one}.get(name) for name in EVENTS)
        for number, one in enumerate(told, first)
    ]
    return spark.createDataFrame(rows, spark_schema(EVENTS))


def came(job: int, hour: int, tenant: str, **fields: Any) -> dict[str, Any]:
    at_ms = START_MS + hour * HOUR_MS
    return {
        "at_ms": at_ms,
        "type": "enqueue",
        "queue": "mail",
        "job": job,
        "generation": 0,
        "slo_ms": 5_000,
        "tenant": tenant,
        "kind": "k",
        "run_at_ms": at_ms,
        "priority": 0,
        "cost": 1,
        **fields,
    }


def rule(hour: int, tenant: str, text: str | None) -> dict[str, Any]:
    at_ms = START_MS + hour * HOUR_MS + 1_000
    what = f"tenant {tenant}"
    return {"at_ms": at_ms, "type": "rule", "queue": "mail", "what": what, "rule": text}


HISTORY = [
    came(1, 0, "acme", weight=2.0),
    came(2, 0, "globex"),
    came(3, 1, "acme"),
    rule(1, "globex", '{"weight":3.5}'),
    came(4, 3, "acme"),
    came(5, 3, "globex"),
    rule(3, "acme", "{}"),
    came(6, 4, "acme"),
    rule(4, "globex", None),
    came(7, 5, "globex"),
]
WEIGHTS = [
    (0, "acme", 2.0),
    (0, "globex", 1.0),
    (1, "acme", 2.0),
    (1, "globex", 3.5),
    (3, "acme", 1.0),
    (3, "globex", 3.5),
    (4, "acme", 1.0),
    (4, "globex", 1.0),
    (5, "globex", 1.0),
]


WHOLE = pytest.param((10,), marks=pytest.mark.long, id="whole")


@pytest.mark.parametrize("cuts", [WHOLE, pytest.param((3, 10), id="cut")])
def test_a_weight_holds_until_another_is_told(
    spark: Any, tmp_path: Path, cuts: tuple[int, ...]
) -> None:
    lake = Lake(str(tmp_path / "lake"))
    first = 0
    for cut in cuts:
        events = events_of(spark, first + 1, HISTORY[first:cut])
        Batch(spark, lake, lake.ledger.last(), lambda _: None).run(staged(lake, events))
        first = cut
    found = [
        (
            (row["hour"] - START_MS) // HOUR_MS,
            row["tenant"],
            row["weight"],
        )
        for row in rows_of(
            lake.read(spark, "gold.fairness").selectExpr(
                "unix_millis(hour) as hour", "tenant", "weight"
            )
        )
    ]
    assert sorted(found) == WEIGHTS
    now = lake.read(spark, "gold.weights").select("tenant", "weight")
    assert rows_of(now) == [
        {"tenant": "acme", "weight": 1.0},
        {"tenant": "globex", "weight": 1.0},
    ]
