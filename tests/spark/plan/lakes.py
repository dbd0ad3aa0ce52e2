"""Lakes with a history that is known in every detail: told by the simulator."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from headway.sim.scenario import Scenario
from headway.spark.columns import EVENTS, arrow_schema
from headway.spark.decode import piles
from headway.spark.lake.lake import Lake
from headway.spark.pipeline.batch import Batch
from headway.wire.history import Commit
from tests.sim.plan.told import history_of
from tests.spark.work import staged

COMMIT = 500


def lake_of(spark: Any, scenario: Scenario, folder: Path) -> Lake:
    """The history of a run, in the tables that a pipeline makes of it."""
    told = history_of(scenario)
    found = chain.from_iterable(piles("p1", _commits(told), 1, len(told) + 1))
    table = pa.Table.from_batches(list(found), arrow_schema(EVENTS))
    lake = Lake(str(folder))
    Batch(spark, lake, lake.ledger.last(), lambda _: None).run(
        staged(lake, spark.createDataFrame(table))
    )
    return lake


def _commits(told: list[Any]) -> Iterator[Commit]:
    for start in range(0, len(told), COMMIT):
        some = told[start : start + COMMIT]
        blob = msgspec.msgpack.encode([0, {}, some])
        yield Commit(start + 1, len(some), some[-1].at_ms, blob)
