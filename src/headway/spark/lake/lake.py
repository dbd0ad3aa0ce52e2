"""All tables of a lake, and the reading of what is published."""

from typing import TYPE_CHECKING, Final

from headway.spark.columns import EVENTS, Column
from headway.spark.columns_silver import ATTEMPTS, JOBS, OPEN_JOBS, OPEN_LEASES
from headway.spark.errors import NoLake
from headway.spark.gold.all import GOLD, VIEWS
from headway.spark.gold.table import DAY
from headway.spark.lake.delta import Place, Table
from headway.spark.lake.published import Ledger, Published

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUARANTINE: Final = "quarantine.events"


class Lake:
    """Tables by name; which of them there are does not depend on the data."""

    def __init__(self, root: str, storage: dict[str, str] | None = None) -> None:
        self.place = Place(root, storage)
        self.ledger = Ledger(self.place)
        plain = {
            "bronze.events": EVENTS,
            "silver.jobs": JOBS,
            "silver.attempts": ATTEMPTS,
            "silver.open_leases": OPEN_LEASES,
        }
        self.tables = {
            name: Table(self.place, name, columns) for name, columns in plain.items()
        }
        self.tables["silver.open_jobs"] = Table(
            self.place, "silver.open_jobs", OPEN_JOBS, ("bucket",)
        )
        for gold in (*GOLD, *VIEWS):
            self.tables[gold.name] = Table(self.place, gold.name, gold.columns, (DAY,))

        self.quarantine = Table(
            self.place,
            QUARANTINE,
            {
                **EVENTS,
                "broken": Column("string", "the rule that the event's job broke"),
                "batch": Column("bigint", "the batch that was not published"),
                "quarantined_at": Column("timestamp", "when that was"),
            },
        )

    def __getitem__(self, name: str) -> Table:
        return self.tables[name]

    def published(self) -> Published:
        """What readers see; raises NoLake if there is nothing."""
        found = self.ledger.last()
        if found.batch == 0:
            raise NoLake(f"nothing is published in {self.place.root}")
        return found

    def read(self, spark: "SparkSession", name: str) -> "DataFrame":
        """A table as it is published."""
        version = self.published().versions.get(name)
        table = self.tables[name]
        return table.empty(spark) if version is None else table.read(spark, version)

    def heal(self, published: Published) -> list[str]:
        """Undoes what an interrupted batch left; answers the tables it was in."""
        healed = []
        for name, table in self.tables.items():
            table.check()
            if table.restore(published.versions.get(name)):
                healed.append(name)
        return healed
