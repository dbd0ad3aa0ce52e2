"""Columns of what `format("headway")` reads and writes beside history."""

from typing import Final

from headway.spark.columns import Column, Columns

JOBS: Final[Columns] = {
    "id": Column("string", "the job's identity, as every answer has it"),
    "queue": Column("string", "the queue"),
    "state": Column("string", "scheduled, ready, leased, waiting, done, …"),
    "kind": Column("string", "the kind of job"),
    "tenant": Column("string", "the tenant"),
    "slo_ms": Column("bigint", "the lane: how long its jobs may wait"),
    "priority": Column("bigint", "within its tenant; lower goes first"),
    "cost": Column("bigint", "units of limits"),
    "enqueued_at": Column("timestamp", "when it came in"),
    "run_at": Column("timestamp", "when it is or was ready"),
    "ended_at": Column("timestamp", "when it ended; null if it has not"),
    "generation": Column("int", "how often it was redriven"),
    "attempt": Column("int", "deliveries so far in this generation"),
    "worker": Column("string", "who has or had it; empty for nobody"),
    "lease_until": Column("timestamp", "when its lease ends"),
    "reply_key": Column("string", "the reply that it waits for"),
    "is_cancel_requested": Column("boolean", "its worker was asked to give it up"),
    "labels": Column("map<string,string>", "its labels"),
    "reason": Column("string", "why its last attempt failed"),
    "error": Column("string", "that error as told"),
    "indexed_to": Column("bigint", "the event up to which the index knew everything"),
}
"""jobs and backlog: jobs as the server's index has them."""

DURATION: Final = ("long", "integer", "short", "byte", "string", "daytimeinterval")
MOMENT: Final = ("timestamp", "timestamp_ntz", "long", "integer", "string")
WHOLE: Final = ("long", "integer", "short", "byte")
NUMBER: Final = (*WHOLE, "double", "float")
TEXT: Final = ("string",)
PAIRS: Final = ("map",)
NESTED: Final = ("string", "struct", "map", "array")

WRITTEN: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "queue": ("", TEXT),
    "kind": ("kind", TEXT),
    "payload": ("payload", (*NESTED, "binary")),
    "tenant": ("tenant", TEXT),
    "slo": ("slo", DURATION),
    "slo_ms": ("slo", WHOLE),
    "run_at": ("run_at", MOMENT),
    "run_at_ms": ("run_at", WHOLE),
    "delay": ("delay", DURATION),
    "delay_ms": ("delay", WHOLE),
    "priority": ("priority", WHOLE),
    "weight": ("weight", NUMBER),
    "cost": ("cost", WHOLE),
    "critical": ("critical", ("boolean",)),
    "labels": ("labels", PAIRS),
    "windows": ("windows", NESTED),
    "timeout": ("timeout", DURATION),
    "timeout_ms": ("timeout", WHOLE),
    "lifetime": ("lifetime", DURATION),
    "lifetime_ms": ("lifetime", WHOLE),
    "attempts": ("attempts", WHOLE),
    "retry": ("retry", NESTED),
    "idempotency_key": ("idempotency_key", TEXT),
    "headers": ("headers", PAIRS),
}
"""Columns that are written: what they are in a job, and the types they may have."""
