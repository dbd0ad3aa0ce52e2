"""A dump of history by a plain loop: what the tables are held against.

It shares nothing with the pipeline but the server that it reads.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from headway.client import history
from headway.client.blocking import Client
from headway.runtime.records import unpack_chapter
from headway.search.error_lines import first_line

TEXTS = ("type", "queue", "tenant", "kind", "worker", "reason", "text", "line")
MORE_TEXTS = (
    *("reply_key", "fate", "what", "rule", "schedule", "partition"),
    *("limit", "value", "parts"),
)
FLAGS = ("is_again", "is_early", "is_done")
NUMBERS = (
    *("number", "at_ms", "seq", "generation", "slo_ms", "run_at_ms", "cost", "token"),
    *("wait_ms", "held_ms", "unstarted_ms", "waited_ms", "tick_ms"),
    *("minute_ms", "minutes", "capacity", "highest"),
    *("used_ms", "stops", "blocked_ms", "full_ms"),
)
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in (*TEXTS, *MORE_TEXTS)),
        *((name, pa.bool_()) for name in FLAGS),
        *((name, pa.int64()) for name in NUMBERS),
        ("weight", pa.float64()),
    ]
)
ROWS = 50_000


def dump(address: str, file: Path, vector: dict[str, int]) -> int:
    """Writes events to a Parquet file, up to these numbers; answers how many."""
    client = Client(address, None)
    count = 0
    try:
        with pq.ParquetWriter(file, SCHEMA) as writer:
            for partition, before in vector.items():
                columns: defaultdict[str, list[Any]] = defaultdict(list)
                for commit in history.commits(client, partition, 1, before):
                    told = unpack_chapter(commit.blob).events
                    for number, event in enumerate(told, commit.first):
                        if number < before:
                            _append(columns, partition, number, event)
                            count += 1
                    if len(columns["type"]) >= ROWS:
                        writer.write_table(pa.table(dict(columns), schema=SCHEMA))
                        columns.clear()
                if columns:
                    writer.write_table(pa.table(dict(columns), schema=SCHEMA))
    finally:
        client.close()
    return count


def count_of(address: str) -> int:
    """How many events there are so far."""
    client = Client(address, None)
    try:
        return sum(one.next - one.first for one in client.ask(history.histories()))
    finally:
        client.close()


def _append(
    columns: dict[str, list[Any]], partition: str, number: int, event: Any
) -> None:
    told = {name: getattr(event, name) for name in event.__struct_fields__}
    told["type"] = event.__struct_config__.tag
    told["partition"] = partition
    told["number"] = number
    told["line"] = first_line(told.get("text") or "")
    if told.get("rule"):
        told["rule"] = json.dumps(msgspec.msgpack.decode(told["rule"]), default=str)
    else:
        told["rule"] = None
    if "parts" in told:
        told["parts"] = json.dumps(told["parts"])
    for field in SCHEMA:
        columns[field.name].append(told.get(field.name))
