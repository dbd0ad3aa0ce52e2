"""Every column of every table: name, type and meaning, in one place.

Types are written as Spark writes them. The documentation is made from this, and so are
the schemas: nothing is ever inferred.
"""

from typing import Final, NamedTuple

import pyarrow as pa


class Column(NamedTuple):
    type: str
    about: str


Columns = dict[str, Column]

_ARROW: Final = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
    "double": pa.float64(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}


def arrow_schema(columns: Columns) -> pa.Schema:
    return pa.schema([(name, _ARROW[one.type]) for name, one in columns.items()])


def spark_schema(columns: Columns) -> str:
    """As Spark reads it."""
    return ", ".join(f"`{name}` {one.type}" for name, one in columns.items())


EVENTS: Final[Columns] = {
    "partition": Column("string", "the partition whose history it is"),
    "event": Column("bigint", "its number in that history: from 1 on, without gaps"),
    "at_ms": Column("bigint", "when it happened, by the partition's clock"),
    "type": Column("string", "what happened: enqueue, lease, ack, …"),
    "queue": Column("string", "the queue"),
    "job": Column("bigint", "the job's number in its partition; null for no job"),
    "generation": Column("int", "how often the job was redriven before"),
    "slo_ms": Column("bigint", "the lane: how long its jobs may wait"),
    "tenant": Column("string", "the tenant"),
    "kind": Column("string", "the kind of job"),
    "run_at_ms": Column("bigint", "when the job is ready (enqueue, retry, reschedule)"),
    "priority": Column("bigint", "within its tenant; lower goes first (enqueue)"),
    "cost": Column("bigint", "units of limits (enqueue)"),
    "labels": Column("map<string,string>", "the job's labels (enqueue)"),
    "weight": Column("double", "what it set its tenant's weight to (enqueue)"),
    "attempt": Column("int", "which attempt"),
    "token": Column("bigint", "the lease that began or ended with it; 0 for none"),
    "worker": Column("string", "who leased it (lease)"),
    "wait_ms": Column("bigint", "how long it had waited, but for held time (lease)"),
    "held_ms": Column("bigint", "paused, blocked or outside its window (lease)"),
    "lease_until_ms": Column("bigint", "when the lease ends (lease, extend)"),
    "is_again": Column("boolean", "started before in the same wait (lease)"),
    "run_ms": Column("bigint", "how long the attempt took (ack, retry, lose, …)"),
    "unstarted_ms": Column(
        "bigint", "begin of a wait that ends here without a start; 0 for none"
    ),
    "reason": Column("string", "why an attempt failed (retry, bury)"),
    "text": Column("string", "the error as told (retry, bury)"),
    "reply_key": Column(
        "string", "the key of a reply (wait, reply, reply_kept; retry, bury: of none)"
    ),
    "wait_until_ms": Column("bigint", "how long a reply is waited for (wait)"),
    "is_early": Column("boolean", "the reply was there before the wait (reply)"),
    "waited_ms": Column("bigint", "how long the job waited for the reply (reply)"),
    "is_done": Column("boolean", "the job ended with the reply (reply)"),
    "fate": Column("string", "early, repeated or late (reply_kept)"),
    "what": Column("string", "which rule changed (rule)"),
    "rule": Column("string", "the whole rule as it is now, as JSON (rule)"),
    "schedule": Column("string", "whose tick it was (tick, and the job's enqueue)"),
    "tick_ms": Column("bigint", "when the tick was due (tick, and the job's enqueue)"),
    "limit_name": Column("string", "which limit (limit)"),
    "limit_value": Column("string", "the value that it holds for; or empty (limit)"),
    "minute_ms": Column("bigint", "when the minute began that it tells of (limit)"),
    "minutes": Column("bigint", "how many alike there are from then on (limit)"),
    "capacity": Column("bigint", "units at once, or of a rate in a period (limit)"),
    "highest": Column("bigint", "the most in use at once (limit)"),
    "used_ms": Column("bigint", "units in use times how long, each minute (limit)"),
    "stops": Column("bigint", "how often the next job had to wait for it (limit)"),
    "blocked_ms": Column("bigint", "how long such jobs waited, each minute (limit)"),
    "full_ms": Column("bigint", "how long anybody waited, each minute (limit)"),
    "limit_parts": Column(
        "string", "tenant, used_ms, stops and blocked_ms of each, as JSON (limit)"
    ),
    "ready": Column("bigint", "ready jobs of the queue then (count)"),
    "scheduled": Column("bigint", "scheduled jobs of the queue then (count)"),
    "leased": Column("bigint", "leased jobs of the queue then (count)"),
    "waiting": Column("bigint", "jobs that waited for a reply then (count)"),
    "dead": Column("bigint", "dead letters of the queue then (count)"),
}
"""bronze.events: history, event by event, as it happened.

Rows of type `count` are no events: they are what the partition itself counted, as of
the event whose number they have.
"""
