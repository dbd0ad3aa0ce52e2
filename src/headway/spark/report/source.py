"""What the report reads: published tables, cut to a span of time.

Rows are added up by Spark. What is brought here is bounded: the first of many lanes,
tenants and errors, and moments in at most `BUCKETS` parts of the span.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from headway.spark.gold.table import DAY, SKETCH_K
from headway.spark.lake.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MINUTE_S: Final = 60
HOUR_S: Final = 3_600
DAY_S: Final = 86_400
BUCKETS: Final = 96
_SIZES_S: Final = (
    *(minutes * MINUTE_S for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * HOUR_S for hours in (1, 2, 3, 6, 12)),
    *(days * DAY_S for days in (1, 2, 7, 14, 28, 91, 364)),
)
RANKS: Final = (0.5, 0.95, 0.99)

Read = Callable[[str], "DataFrame | None"]


class Span(msgspec.Struct, frozen=True):
    """From a moment to another, in seconds since 1970; None is as far as there is."""

    since_s: int | None = None
    before_s: int | None = None


class Buckets(msgspec.Struct, frozen=True):
    """A span in equal parts; each is named by the second it begins with."""

    first_s: int
    last_s: int
    size_s: int

    def starts(self) -> list[int]:
        return list(range(self.first_s, self.last_s + 1, self.size_s))


def buckets(since_s: int, until_s: int, least_s: int = MINUTE_S) -> Buckets:
    """The smallest parts of which there are not too many."""
    for size_s in _SIZES_S:
        first_s, last_s = (at // size_s * size_s for at in (since_s, until_s))
        if size_s >= least_s and (last_s - first_s) // size_s < BUCKETS:
            return Buckets(first_s, last_s, size_s)
    years = (until_s - since_s) // (BUCKETS * _SIZES_S[-1]) + 2
    size_s = years * _SIZES_S[-1]
    first_s, last_s = (at // size_s * size_s for at in (since_s, until_s))
    return Buckets(first_s, last_s, size_s)


class Source:
    """Tables by name, with the rows of the span."""

    def __init__(self, read: Read, span: Span, as_of_s: int) -> None:
        self._read = read
        self.span = span
        self.as_of_s = as_of_s
        """How far the tables go: what is not over by then is not judged."""

    def table(self, name: str, when: str, columns: Iterable[str]) -> "DataFrame | None":
        """None if it was never published, or by a version without these columns."""
        from pyspark.sql import functions as F

        frame = self._read(name)
        if frame is None or not {when, *columns} <= set(frame.columns):
            return None
        since, before = self.span.since_s, self.span.before_s
        at, day = F.col(when), F.col(DAY)
        if since is not None:
            frame = frame.where(day >= F.lit(_moment(since).date()))
            if when != DAY:
                frame = frame.where(F.unix_seconds(at) >= since)
        if before is not None:
            frame = frame.where(day <= F.lit(_moment(before - 1).date()))
            if when != DAY:
                frame = frame.where(F.unix_seconds(at) < before)
        return frame


def of_lake(spark: "SparkSession", lake: Lake) -> Read:
    """Reads what is published now, in one state of all tables."""
    versions = lake.published().versions

    def read(name: str) -> "DataFrame | None":
        version, table = versions.get(name), lake.tables.get(name)
        if version is None or table is None:
            return None
        return table.read(spark, version)

    return read


def bucket_of(when: str, size_s: int) -> "Column":
    """The second with which the part of the span begins that a moment is in."""
    from pyspark.sql import functions as F

    seconds = F.unix_seconds(F.col(when))
    return seconds - F.pmod(seconds, F.lit(size_s))


def hour_of_week(when: str) -> "Column":
    """0 is the first hour of a Monday, in UTC."""
    from pyspark.sql import functions as F

    return (F.weekday(when) * 24 + F.hour(when)).cast("int")


def merged(sketch: str) -> "Column":
    from pyspark.sql import functions as F

    return F.kll_merge_agg_bigint(sketch, F.lit(SKETCH_K))


def quantiles(sketch: str) -> "Column":
    """Of a merged sketch: an array by RANKS, or null where nothing is in it."""
    from pyspark.sql import functions as F

    found = F.array(
        *(F.kll_sketch_get_quantile_bigint(sketch, F.lit(rank)) for rank in RANKS)
    )
    # An empty sketch has no quantiles: Spark would raise.
    return F.when(F.kll_sketch_get_n_bigint(sketch) > 0, found)


class Quantiles(msgspec.Struct, frozen=True):
    """In milliseconds."""

    p50: int
    p95: int
    p99: int


def as_quantiles(found: list[int] | None) -> Quantiles | None:
    return None if found is None else Quantiles(*found)


def rows(frame: "DataFrame", most: int) -> list[Any]:
    """Brings them here, but no more than this."""
    found: list[Any] = frame.limit(most).collect()
    return found


def hourly(
    frame: "DataFrame", found: list[Any], value: "Column"
) -> tuple[dict[str, dict[int, Any]], Buckets]:
    """The value over time, of the queues that were found with their `first` and `last`
    second; by queue and by the second with which a part begins.
    """
    from pyspark.sql import functions as F

    first, last = (
        min(row["first"] for row in found),
        max(row["last"] for row in found),
    )
    parts = buckets(first, last, HOUR_S)
    by_queue: dict[str, dict[int, Any]] = {row["queue"]: {} for row in found}
    trend = (
        frame.where(F.col("queue").isin(list(by_queue)))
        .groupBy("queue", bucket_of("hour", parts.size_s).alias("at"))
        .agg(value.alias("value"))
    )
    for row in rows(trend, len(found) * len(parts.starts())):
        by_queue[row["queue"]][row["at"]] = row["value"]
    return by_queue, parts


def _moment(at_s: int) -> datetime:
    return datetime.fromtimestamp(at_s, tz=UTC)
