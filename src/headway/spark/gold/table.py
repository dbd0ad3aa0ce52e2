"""What a gold table is: rows that a batch adds, by keys, and how rows of one key add up.

Rows are filed by day. A batch touches few days; those are read, added up with what the
batch brings, and written again. So each key has one row, whoever reads the table.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from headway.spark.columns import Column, Columns

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

DAY: Final = "day"
DAY_COLUMN: Final = Column("date", "the day, in UTC; rows are filed by it")
SKETCH: Final = "sketch"
"""Adds up sketches of quantiles."""
DISTINCT: Final = "distinct"
"""Adds up sketches of how many different things there were."""
NONE: Final[Columns] = {}
SKETCH_K: Final = 3_000
"""Size of a sketch: its quantiles are off by half a percent at most."""
DISTINCT_LOG: Final = 12
"""Up to two to this many different things are counted exactly, more within 3 %."""


class Measure(NamedTuple):
    """A column that adds up."""

    column: Column
    add: str = "sum"
    """sum, min, max, or the adding of sketches."""

    def total(self, name: str) -> "Expression":
        """Of all rows of a key."""
        from pyspark.sql import functions as F

        if self.add == SKETCH:
            total = F.kll_merge_agg_bigint(name, F.lit(SKETCH_K))
        elif self.add == DISTINCT:
            total = F.theta_union_agg(name, F.lit(DISTINCT_LOG))
        else:
            total = getattr(F, self.add)(name)
        return total.cast(self.column.type).alias(name)


class Facts(NamedTuple):
    """What a batch tells: its events, and the jobs and attempts that ended with it."""

    events: "DataFrame"
    jobs: "DataFrame"
    attempts: "DataFrame"
    flow: "DataFrame"
    """What came, started and ended, by lane, tenant and hour: see `gold.shared`."""
    work: "DataFrame"
    """How long attempts took, by lane, tenant and minute."""
    told: "DataFrame"
    """Weights that were told, by tenant and hour."""
    promised: "DataFrame"
    """Waits by lane, and by the minutes in which they began and were due."""
    weights: "DataFrame"
    """gold.weights as it was before."""


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
    is_by_event: bool = True
    """Rows are filed by the day of the event that they tell of, and of no other."""
    condition: str | None = None
    """Which events it is made of, as SQL, if few are: without any it stays as it is."""

    @property
    def columns(self) -> Columns:
        return {
            DAY: DAY_COLUMN,
            **self.keys,
            **{name: one.column for name, one in self.measures.items()},
            **self.derived,
        }

    def added(self, known: "DataFrame", new: "DataFrame") -> "DataFrame":
        """The rows of some days as they were, and what comes to them: one for a key."""
        wanted = [DAY, *self.keys, *self.measures]
        both = known.select(*wanted).unionByName(new.select(*wanted))
        adds = [measure.total(name) for name, measure in self.measures.items()]
        rows = both.groupBy(DAY, *self.keys).agg(*adds)
        return rows if self.derive is None else self.derive(rows)


class View(NamedTuple):
    """A table that is made of another's rows: of whole days, whenever they change."""

    name: str
    about: str
    of: str
    """The name of that table."""
    keys: Columns
    figures: Columns
    rows: Callable[["DataFrame"], "DataFrame"]
    """The rows of some days, from those of the other table."""

    @property
    def columns(self) -> Columns:
        return {DAY: DAY_COLUMN, **self.keys, **self.figures}
