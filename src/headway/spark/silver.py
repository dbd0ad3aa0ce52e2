"""Events to jobs and attempts: what a batch ends goes to its table, the rest is carried.

Everything is an aggregate that can be taken in parts, so a job that spans many batches
costs each of them one row. What every job has is numbers, and those are added up in a
hash table: with one text among them Spark would sort all events. Texts, and what few
jobs have, are added up apart, of the few events that tell of them.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from headway.spark.columns_silver import KEYS, OPEN_JOBS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BUCKET: Final = 1_000_000
OUTCOMES: Final = {"done": 1, "cancelled": 2, "dead": 3, "expired": 4}
ENDS: Final = """(
    type in ('ack', 'cancel', 'bury', 'expire') or (type = 'reply' and is_done)
)"""
LEASE_ENDS: Final = (
    "type in ('ack', 'retry', 'release', 'lose', 'wait', 'bury', 'cancel', 'expire')"
    " and token > 0"
)
_FIRST: Final = "type = 'lease' and not is_again"
_FAILED: Final = "type in ('retry', 'bury', 'lose', 'expire')"


class Part(NamedTuple):
    """What a column of a job is made of: something of each event, and how to add up."""

    of_event: str
    add: str


def _when(condition: str, value: str) -> str:
    return f"case when {condition} then {value} end"


def _count(condition: str) -> Part:
    return Part(_when(condition, "1L"), "sum")


PARTS: Final = {
    "first_event": Part("event", "min"),
    "last_event": Part("event", "max"),
    "enqueued_ms": Part(_when("type in ('enqueue', 'redrive')", "at_ms"), "max"),
    "ready_ms": Part(
        "case type when 'enqueue' then run_at_ms when 'redrive' then at_ms end", "max"
    ),
    "started_ms": Part(_when("type = 'lease'", "at_ms"), "min"),
    "ended_ms": Part(_when(ENDS, "at_ms"), "max"),
    "ended_event": Part(_when(ENDS, "event"), "max"),
    "outcome": Part(
        "case type when 'ack' then 1 when 'cancel' then 2 when 'bury' then 3"
        " when 'expire' then 4 when 'reply' then if(is_done, 1, null) end",
        "max",
    ),
    "priority": Part("priority", "max"),
    "cost": Part("cost", "max"),
    "waits": _count(_FIRST),
    "misses": _count(f"{_FIRST} and wait_ms > slo_ms"),
    "wait_ms": Part(_when(_FIRST, "wait_ms"), "sum"),
    "held_ms": Part(_when(_FIRST, "held_ms"), "sum"),
    "leases": _count("type = 'lease'"),
    "lease_ends": _count(LEASE_ENDS),
    "ends": _count(ENDS),
    "attempts": Part("attempt", "max"),
    # Every start is taken off and every end added: what is left is the time between.
    "run_ms": Part(
        f"case when type = 'lease' then -at_ms when {LEASE_ENDS} then at_ms end", "sum"
    ),
}
"""Of every event of a job: numbers only."""
RARE: Final = {
    "weight": Part("weight", "max"),
    "tick_ms": Part("tick_ms", "max"),
    "retries": _count("type = 'retry'"),
    "losses": _count("type = 'lose'"),
    "releases": _count("type = 'release'"),
    "reply_waits": _count("type = 'wait'"),
    "replies": _count("type = 'reply'"),
    "reply_ms": Part(_when("type = 'reply'", "waited_ms"), "sum"),
    "error_event": Part(_when(_FAILED, "event"), "max"),
    "schedule": Part("schedule", "max"),
    "labels": Part("to_json(labels)", "max"),
    # The number comes first and has always the same length: the greatest is the last.
    "failure": Part(
        _when(
            _FAILED,
            "to_json(named_struct('at', lpad(event, 19, '0'), 'reason', case type"
            " when 'lose' then 'lease lost' when 'expire' then 'expired'"
            " else reason end, 'text', text))",
        ),
        "max",
    ),
}
_TELLS_RARE: Final = f"""(
    {_FAILED} or type in ('release', 'wait', 'reply')
    or weight is not null or tick_ms is not null
    or schedule is not null or labels is not null
)"""
_HAS_RARE: Final = (
    f"coalesce({', '.join(f'string({name})' for name in RARE)}) is not null"
)


class Jobs(NamedTuple):
    ended: "DataFrame"
    """Rows of silver.jobs."""
    open: "DataFrame"
    """Rows of silver.open_jobs, for the buckets that were touched."""


def merged(events: "DataFrame", carried: "DataFrame") -> "DataFrame":
    """The jobs that the events tell of, together with what was known of them."""
    told = events.where("job is not null and type not in ('tick', 'discard')")
    common = _added(told, carried, PARTS)
    rare = _added(told.where(_TELLS_RARE), carried.where(_HAS_RARE), RARE)
    return common.join(rare, ["bucket", *KEYS], "left_outer")


def _added(
    told: "DataFrame", carried: "DataFrame", parts: dict[str, Part]
) -> "DataFrame":
    from pyspark.sql import functions as F

    new = told.select(
        F.expr(f"job div {BUCKET}").alias("bucket"),
        *KEYS,
        *(F.expr(part.of_event).alias(name) for name, part in parts.items()),
    )
    adds = [
        getattr(F, part.add)(name).cast(OPEN_JOBS[name].type).alias(name)
        for name, part in parts.items()
    ]
    known = carried.select("bucket", *KEYS, *parts)
    return new.unionByName(known).groupBy("bucket", *KEYS).agg(*adds)


def jobs(known: "DataFrame") -> Jobs:
    """Those that are over, and those that are not."""
    from pyspark.sql import functions as F

    failure = F.from_json("failure", "at string, reason string, text string")
    cases = " ".join(f"when {code} then '{name}'" for name, code in OUTCOMES.items())
    ended = known.where("ended_event is not null").select(
        *KEYS,
        F.expr(f"case outcome {cases} end").alias("outcome"),
        _moment("enqueued"),
        _moment("ready"),
        _moment("started"),
        _moment("ended"),
        "first_event",
        "ended_event",
        "priority",
        "cost",
        "weight",
        F.from_json("labels", "map<string,string>").alias("labels"),
        "schedule",
        _moment("tick"),
        *(
            F.coalesce(name, F.lit(0)).alias(name)
            for name in (
                "waits",
                "misses",
                "wait_ms",
                "held_ms",
                "leases",
                "attempts",
                "run_ms",
                "retries",
                "losses",
                "releases",
                "reply_waits",
                "replies",
                "reply_ms",
            )
        ),
        failure["reason"].alias("last_reason"),
        failure["text"].alias("last_error"),
    )
    return Jobs(ended, known.where("ended_event is null"))


def attempts(events: "DataFrame", carried: "DataFrame") -> "DataFrame":
    """Rows of silver.attempts: each lease that ended, with its begin."""
    from pyspark.sql import functions as F

    begun = _begun(events, carried).alias("begun")
    over = events.where(LEASE_ENDS).alias("over")
    joined = over.join(
        begun.hint("shuffle_hash"),
        (F.col("begun.partition") == F.col("over.partition"))
        & (F.col("begun.token") == F.col("over.token")),
        "left_outer",
    )
    return joined.select(
        *(F.col(f"over.{name}").alias(name) for name in KEYS),
        F.col("over.token").alias("token"),
        F.coalesce("begun.attempt", "over.attempt").alias("attempt"),
        F.col("begun.worker").alias("worker"),
        F.timestamp_millis(
            F.coalesce("begun.started_ms", F.expr("over.at_ms - over.run_ms"))
        ).alias("started_at"),
        F.timestamp_millis("over.at_ms").alias("ended_at"),
        F.col("over.event").alias("ended_event"),
        F.col("over.type").alias("end"),
        F.coalesce(F.expr("over.at_ms - begun.started_ms"), "over.run_ms").alias(
            "run_ms"
        ),
        F.col("begun.wait_ms").alias("wait_ms"),
        F.col("begun.held_ms").alias("held_ms"),
        F.col("begun.is_again").alias("is_again"),
        F.col("over.reason").alias("reason"),
        F.col("over.text").alias("error"),
    )


def open_leases(
    events: "DataFrame", carried: "DataFrame", known: "DataFrame", buckets: list[int]
) -> "DataFrame":
    """Rows of silver.open_leases: of jobs that are leased now, the last lease.

    Which jobs those are is known already, so that no lease is looked for its end. Of
    jobs that the batch does not tell of, leases stay as they were.
    """
    from pyspark.sql import functions as F

    whose = ["partition", "job", "generation"]
    leased = known.where("coalesce(leases, 0) > coalesce(lease_ends, 0)").select(*whose)
    is_touched = F.expr(f"job div {BUCKET}").isin(buckets)
    touched = _begun(events, carried.where(is_touched))
    found = touched.join(leased, whose, "left_semi")
    last = found.groupBy(*whose).agg(F.max("token").alias("token"))
    still = found.join(last, [*whose, "token"], "left_semi")
    return still.unionByName(carried.where(~is_touched))


def _begun(events: "DataFrame", carried: "DataFrame") -> "DataFrame":
    """The leases that began, and those that were not over before."""
    from pyspark.sql import functions as F

    begun = events.where("type = 'lease'").withColumn("started_ms", F.col("at_ms"))
    return begun.select(*carried.columns).unionByName(carried)


def _moment(name: str) -> "Column":
    from pyspark.sql import functions as F

    return F.timestamp_millis(f"{name}_ms").alias(f"{name}_at")
