"""What a gold table is: rows that a batch adds, by keys, and how rows of one key add up.

Rows are filed by day. A batch touches few days; those are read, added up with what the
batch brings, and written again. So each key has one row, whoever reads the table.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from headway.spark.columns import Column, Columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DAY: Final = "day"
SKETCH: Final = "sketch"
"""Adds up sketches of quantiles."""
NONE: Final[Columns] = {}
SKETCH_K: Final = 3_000
"""Size of a sketch: its quantiles are off by half a percent at most."""


class Measure(NamedTuple):
    """A column that adds up."""

    column: Column
    add: str = "sum"
    """sum, min, max, or the adding of sketches."""


class Facts(NamedTuple):
    """What a batch tells: its events, and the jobs and attempts that ended with it."""

    events: "DataFrame"
    jobs: "DataFrame"
    attempts: "DataFrame"


class Gold(NamedTuple):
    """A gold table."""

    name: str
    about: str
    keys: Columns
    measures: dict[str, Measure]
    rows: Callable[[Facts], "DataFrame"]
    """The rows that a batch adds: day, keys and measures, any number for a key."""
    derive: Callable[["DataFrame"], "DataFrame"] | None = None
    """Makes further columns of the whole rows of the days that were touched."""
    derived: Columns = NONE

    @property
    def columns(self) -> Columns:
        return {
            DAY: Column("date", "the day, in UTC; rows are filed by it"),
            **self.keys,
            **{name: one.column for name, one in self.measures.items()},
            **self.derived,
        }

    def added(self, known: "DataFrame", new: "DataFrame") -> "DataFrame":
        """The rows of some days as they were, and what comes to them: one for a key."""
        from pyspark.sql import functions as F

        wanted = [DAY, *self.keys, *self.measures]
        both = known.select(*wanted).unionByName(new.select(*wanted))
        adds = []
        for name, measure in self.measures.items():
            if measure.add == SKETCH:
                total = F.kll_merge_agg_bigint(name, F.lit(SKETCH_K))
            else:
                total = getattr(F, measure.add)(name)
            adds.append(total.cast(measure.column.type).alias(name))
        rows = both.groupBy(DAY, *self.keys).agg(*adds)
        return rows if self.derive is None else self.derive(rows)
