"""Writes docs/tables.md from the columns of the tables."""

from collections.abc import Iterator
from pathlib import Path

from headway.spark.columns import EVENTS, Columns
from headway.spark.columns_silver import ATTEMPTS, JOBS, OPEN_JOBS, OPEN_LEASES
from headway.spark.gold.all import GOLD, VIEWS
from headway.spark.gold.table import View

PAGE = Path("docs/tables.md")

HEAD = """# The tables

Written by `make docs` from the columns themselves.

The pipeline makes Delta tables of a server's history. **Bronze** is history event by event,
**silver** is jobs and attempts, each told once it is over, and **gold** answers questions.
Every table is a folder: `silver.jobs` is `LAKE/silver/jobs`.

Times are UTC. Names that end in `_ms` are milliseconds, those that end in `_at` moments,
and `minute`, `hour` and `day` the beginning of one. Gold tables have one row for each key,
printed in bold, and are filed by `day`. Their figures add up over any of the keys:
`sum(due)`, `max(longest_ms)`. Sketches add up, too, and give any quantile within half a
percent of its rank:

```sql
select queue, kll_sketch_get_quantile_bigint(kll_merge_agg_bigint(wait_sketch, 3000), 0.99)
from waits group by queue
```

A sketch of nothing is empty and has no quantiles: `kll_sketch_get_n_bigint(…) > 0` keeps
those that have.

## Reading them

`LAKE/_published` is a Delta table with a row for each batch that is whole. Its `record` is
JSON: `versions` has the version of every table that belongs together, `vector` the first
event of each partition that is not in them yet, and `at_ms` the time of the last one that
is. Tables may have later versions, of a batch that is being written or was given up; read
those that the newest record names.

With Spark, which needs no jar for it:

```python
from headway.spark.lake.lake import Lake
from headway.spark.session import session

lake = Lake("lake")
lake.read(session(), "gold.promises").createOrReplaceTempView("promises")
```

With DuckDB, which reads what `deltalake` names, without an extension:

```python
import json

import duckdb
from deltalake import DeltaTable

batches = DeltaTable("lake/_published").to_pyarrow_table().to_pylist()
newest = json.loads(max(batches, key=lambda batch: batch["batch"])["record"])
version = newest["versions"]["gold.promises"]
table = DeltaTable("lake/gold/promises", version=version)
promises = table.to_pyarrow_dataset()
duckdb.sql("select queue, sum(met) / sum(due) from promises group by queue").show()
```

With pandas, from the same table:

```python
promises = table.to_pandas()
promises.groupby("queue")[["due", "met"]].sum()
```

`table.file_uris()` names its Parquet files for everything else. A file must not be read
because it is there: only the log says which belong to a version.
"""

PLAIN = {
    "bronze.events": (
        "History, event by event, as it happened. Rows of type `count` are no events: "
        "they are what the partition itself counted, as of the event whose number they "
        "have.",
        EVENTS,
    ),
    "silver.jobs": ("Jobs that are over, a row for each generation.", JOBS),
    "silver.attempts": ("Leases that ended.", ATTEMPTS),
    "silver.open_jobs": (
        "Jobs that are not over, as far as they are known; carried from batch to batch.",
        OPEN_JOBS,
    ),
    "silver.open_leases": ("Leases that have not ended.", OPEN_LEASES),
}


def page() -> str:
    parts = [HEAD]
    for layer in ("Bronze", "Silver"):
        parts.append(f"\n## {layer}\n")
        for name, (about, columns) in PLAIN.items():
            if name.startswith(layer.lower()):
                parts += described(name, about, columns)
    parts.append("\n## Gold\n")
    for gold in GOLD:
        parts += described(gold.name, gold.about, gold.columns, (*gold.keys, "day"))
        for view in VIEWS:
            if view.of == gold.name:
                parts += viewed(view)
    return "".join(parts)


def viewed(view: View) -> Iterator[str]:
    about = f"{view.about} Made of `{view.of}`."
    return described(view.name, about, view.columns, (*view.keys, "day"))


def described(
    name: str, about: str, columns: Columns, keys: tuple[str, ...] = ()
) -> Iterator[str]:
    yield f"\n### {name}\n\n{about}\n\n| column | type | meaning |\n|---|---|---|\n"
    for column, (kind, meaning) in columns.items():
        shown = f"**`{column}`**" if column in keys else f"`{column}`"
        yield f"| {shown} | {kind} | {meaning} |\n"


def main() -> None:
    PAGE.write_text(page())
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
