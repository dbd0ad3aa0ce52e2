"""Columns of the silver tables: jobs and attempts, each told once it is over."""

from typing import Final

from headway.spark.columns import Column, Columns

KEYS: Final = ("partition", "job", "generation", "queue", "slo_ms", "tenant", "kind")

_WHOSE: Final[Columns] = {
    "partition": Column("string", "the partition"),
    "job": Column("bigint", "the job's number in its partition"),
    "generation": Column("int", "0, and one more for every redrive"),
    "queue": Column("string", "the queue"),
    "slo_ms": Column("bigint", "the lane: how long its jobs may wait"),
    "tenant": Column("string", "the tenant"),
    "kind": Column("string", "the kind of job"),
}

JOBS: Final[Columns] = {
    **_WHOSE,
    "outcome": Column("string", "done, cancelled, dead or expired (dead of age)"),
    "enqueued_at": Column("timestamp", "when it was accepted, or redriven"),
    "ready_at": Column("timestamp", "when it was first ready"),
    "started_at": Column("timestamp", "its first start; null if it never started"),
    "ended_at": Column("timestamp", "when it was over"),
    "first_event": Column("bigint", "the number of its first event"),
    "ended_event": Column("bigint", "the number of the event that ended it"),
    "priority": Column("bigint", "within its tenant; null after a redrive"),
    "cost": Column("bigint", "units of limits; null after a redrive"),
    "weight": Column("double", "what it set its tenant's weight to"),
    "labels": Column("map<string,string>", "its labels; null after a redrive"),
    "schedule": Column("string", "the schedule whose tick it was"),
    "tick_at": Column("timestamp", "when that tick was due"),
    "waits": Column("bigint", "waits for a worker that ended with a start"),
    "misses": Column("bigint", "those that took longer than the SLO"),
    "wait_ms": Column("bigint", "their length in all, but for held time"),
    "held_ms": Column("bigint", "time paused, blocked or outside its window"),
    "leases": Column("bigint", "how often it was handed to a worker"),
    "attempts": Column("int", "attempts that counted"),
    "run_ms": Column("bigint", "time in the hands of workers"),
    "retries": Column("bigint", "attempts that failed and were followed by another"),
    "losses": Column("bigint", "leases that ended without a word"),
    "releases": Column("bigint", "leases that were given back"),
    "reply_waits": Column("bigint", "how often it waited for a reply"),
    "replies": Column("bigint", "replies that came"),
    "reply_ms": Column("bigint", "how long those were waited for"),
    "last_reason": Column("string", "of its last failure"),
    "last_error": Column("string", "the text of its last failure"),
}
"""silver.jobs: one row for each job and generation that is over."""

ATTEMPTS: Final[Columns] = {
    **_WHOSE,
    "token": Column("bigint", "the lease"),
    "attempt": Column("int", "which attempt; null if its start was not read"),
    "worker": Column("string", "who had it"),
    "started_at": Column("timestamp", "when the lease began"),
    "ended_at": Column("timestamp", "when it ended"),
    "ended_event": Column("bigint", "the number of the event that ended it"),
    "end": Column("string", "ack, retry, release, lose, wait, bury, cancel, expire"),
    "run_ms": Column("bigint", "how long it lasted"),
    "wait_ms": Column("bigint", "how long the job had waited, but for held time"),
    "held_ms": Column("bigint", "time paused, blocked or outside its window"),
    "is_again": Column("boolean", "started before in the same wait"),
    "reason": Column("string", "why it failed"),
    "error": Column("string", "the error as told"),
}
"""silver.attempts: one row for each lease that ended."""

OPEN_JOBS: Final[Columns] = {
    "bucket": Column("bigint", "the job's number by millions: rows are filed by it"),
    **_WHOSE,
    "first_event": Column("bigint", "the number of its first event"),
    "last_event": Column("bigint", "the number of its last event so far"),
    "enqueued_ms": Column("bigint", "when it was accepted, or redriven"),
    "ready_ms": Column("bigint", "when it was first ready"),
    "started_ms": Column("bigint", "its first start"),
    "ended_ms": Column("bigint", "null: it is not over"),
    "ended_event": Column("bigint", "null: it is not over"),
    "outcome": Column("int", "null: it is not over"),
    "priority": Column("bigint", "within its tenant"),
    "cost": Column("bigint", "units of limits"),
    "weight": Column("double", "what it set its tenant's weight to"),
    "tick_ms": Column("bigint", "when its schedule's tick was due"),
    "waits": Column("bigint", "waits for a worker that ended with a start"),
    "misses": Column("bigint", "those that took longer than the SLO"),
    "wait_ms": Column("bigint", "their length in all, but for held time"),
    "held_ms": Column("bigint", "time paused, blocked or outside its window"),
    "leases": Column("bigint", "how often it was handed to a worker"),
    "lease_ends": Column("bigint", "how often such a lease ended"),
    "ends": Column("bigint", "how often it ended: null"),
    "attempts": Column("int", "attempts that counted"),
    "run_ms": Column("bigint", "time in the hands of workers; off while it runs"),
    "retries": Column("bigint", "attempts that failed"),
    "losses": Column("bigint", "leases that ended without a word"),
    "releases": Column("bigint", "leases that were given back"),
    "reply_waits": Column("bigint", "how often it waited for a reply"),
    "replies": Column("bigint", "replies that came"),
    "reply_ms": Column("bigint", "how long those were waited for"),
    "error_event": Column("bigint", "the number of its last failure"),
    "schedule": Column("string", "the schedule whose tick it was"),
    "labels": Column("string", "its labels, as JSON"),
    "failure": Column("string", "its last failure: number, reason and text, as JSON"),
}
"""silver.open_jobs: jobs that are not over, as far as they are known.

Carried from batch to batch. What is told here of a job is complete only when the job is
over, and then it is in silver.jobs.
"""

OPEN_LEASES: Final[Columns] = {
    **_WHOSE,
    "token": Column("bigint", "the lease"),
    "attempt": Column("int", "which attempt"),
    "worker": Column("string", "who has it"),
    "started_ms": Column("bigint", "when the lease began"),
    "wait_ms": Column("bigint", "how long the job had waited, but for held time"),
    "held_ms": Column("bigint", "time paused, blocked or outside its window"),
    "is_again": Column("boolean", "started before in the same wait"),
}
"""silver.open_leases: leases that have not ended."""
