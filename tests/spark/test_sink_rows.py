"""Rows and filters, without a session: what is sent, and what is asked for."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from headway.core.errors import BadValue
from headway.spark.source.encode import jobs
from headway.spark.source.jobs import Wanted
from headway.spark.source.options import read_options

AT_MS = 1_700_000_000_123
AT = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=AT_MS)


def said(columns: dict[str, Any], queue: str | None = "mail") -> list[Any]:
    batch = pa.RecordBatch.from_pydict(columns)
    return [(name, json.loads(row)) for name, row in jobs(batch, queue)]


def test_nulls_are_not_said_and_queues_may_be_in_a_column() -> None:
    found = said({"queue": ["web", None], "kind": ["a", None], "cost": [None, 2]})
    assert found == [("web", {"kind": "a"}), ("mail", {"cost": 2})]
    with pytest.raises(BadValue, match="queue"):
        said({"queue": [None]}, None)


def test_times_are_milliseconds_and_bytes_are_base64() -> None:
    columns = {
        "run_at": pa.array([AT], pa.timestamp("us", "UTC")),
        "slo": pa.array([timedelta(seconds=5)], pa.duration("us")),
        "payload": pa.array([b"\x00"], pa.binary()),
    }
    wanted = {"run_at": AT_MS, "slo": 5_000, "payload_base64": "AA=="}
    assert said(columns) == [("mail", wanted)]


def test_nested_payloads_become_json() -> None:
    kind = pa.struct(
        [("a", pa.map_(pa.string(), pa.int64())), ("b", pa.list_(pa.int8()))]
    )
    payload = pa.array([{"a": [("x", 1)], "b": [1, 2]}], kind)
    assert said({"payload": payload})[0][1] == {"payload": {"a": {"x": 1}, "b": [1, 2]}}


@pytest.mark.parametrize("text", ["", "x", "1}, {", '{"a": 1} {}', "[1", "\ud800"])
def test_text_that_is_not_one_json_value_is_no_payload(text: str) -> None:
    with pytest.raises((BadValue, UnicodeError)):
        said({"payload": [text]})


def taken(*filters: Filter) -> tuple[Wanted, list[bool]]:
    wanted = Wanted()
    return wanted, [wanted.take(one) for one in filters]


def test_what_the_server_sees_to_is_not_looked_at_again() -> None:
    wanted, told = taken(
        EqualTo(("queue",), "mail"),
        EqualTo(("tenant",), "acme"),
        In(("state",), ("ready", "dead")),
    )
    assert told == [True, True, True]
    query = wanted.query("mail", AT_MS)
    assert (query["tenant"], query["state"]) == ("acme", "dead,ready")
    assert query["until"] == AT_MS + 1


def test_what_the_server_can_not_say_is_left_to_spark() -> None:
    filters = [
        EqualTo(("queue",), "no queue"),
        EqualTo(("state",), "odd"),
        EqualTo(("kind",), "x" * 129),
        EqualTo(("worker",), "w"),
        EqualTo(("cost",), 1),
        In(("queue",), ("mail", None)),
        In(("tenant",), ("a", "b")),
    ]
    wanted, told = taken(*filters)
    assert told == [False] * len(filters)
    assert wanted == Wanted()


def test_filters_that_contradict_each_other_find_nothing() -> None:
    wanted, _ = taken(EqualTo(("kind",), "a"), EqualTo(("kind",), "b"))
    assert wanted.is_nothing
    wanted, _ = taken(EqualTo(("queue",), "a"), EqualTo(("queue",), "b"))
    assert wanted.queues == frozenset()


def test_times_only_narrow_and_never_lose_a_millisecond() -> None:
    us = timedelta(microseconds=1)
    for one, since_ms, until_ms in (
        (GreaterThanOrEqual(("enqueued_at",), AT), AT_MS, None),
        (GreaterThan(("enqueued_at",), AT), AT_MS, None),
        (LessThan(("enqueued_at",), AT), 0, AT_MS),
        (LessThan(("enqueued_at",), AT + us), 0, AT_MS + 1),
        (LessThanOrEqual(("enqueued_at",), AT), 0, AT_MS + 1),
        (LessThanOrEqual(("enqueued_at",), AT - us), 0, AT_MS),
    ):
        wanted, told = taken(one)
        assert told == [False]
        assert (wanted.since_ms, wanted.until_ms) == (since_ms, until_ms), one


@pytest.mark.parametrize(
    "options",
    [
        {"table": "odd"},
        {"writeId": "../x"},
        {"writeId": ""},
        {"chunkJobs": "0"},
        {"chunkJobs": "10001"},
        {"odd": "1"},
    ],
)
def test_options_that_can_not_be_meant_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(BadValue):
        read_options({"url": "http://127.0.0.1:1", **options})
