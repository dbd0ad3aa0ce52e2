"""A few jobs with all kinds of ends, on a server, and the pipeline over them."""

from pathlib import Path
from typing import Any

from headway.spark.lake.lake import Lake
from headway.spark.pipeline.batch import Tell
from headway.spark.pipeline.run import Pipeline, Settings
from tests.server.process import Served
from tests.spark.conftest import rows_of


def enqueue(served: Served, count: int, **fields: object) -> None:
    jobs = [{"kind": "k", "slo": "1m", **fields} for _ in range(count)]
    assert served.ask("POST", "/v1/queues/mail/jobs", jobs).status == 201


def lease(served: Served, most: int) -> list[str]:
    body = {"queues": ["mail"], "max": most, "worker": "w", "lease": "1h"}
    found = served.ask("POST", "/v1/lease", body).json
    return [job["token"] for job in found["jobs"]]


def work(served: Served) -> None:
    """Twelve jobs: eight done, one of them at its second attempt; one dead, one
    cancelled, one leased, one ready."""
    enqueue(served, 12, tenant="acme", labels={"region": "eu"})
    first, second, *rest = lease(served, 9)
    failures = [
        {"token": first, "error": "ValueError: no 17", "retry_in": 0},
        {"token": second, "error": "KeyError: 'x'", "bury": True},
    ]
    assert served.ask("POST", "/v1/nack", {"jobs": failures}).status == 200
    assert served.ask("POST", "/v1/ack", {"tokens": rest}).status == 200
    (again,) = lease(served, 1)
    assert served.ask("POST", "/v1/ack", {"tokens": [again]}).status == 200
    lease(served, 1)
    query = "/v1/jobs?queue=mail&state=ready"
    found = served.until(200, query).json["jobs"]
    while len(found) != 2:
        found = served.ask("GET", query).json["jobs"]
    answer = served.ask("DELETE", f"/v1/jobs/{found[0]['id']}")
    assert answer.status in {200, 202, 204}


def nothing(_: str) -> None:
    """Nobody listens."""


def run(
    spark: Any,
    served: Served,
    lake: Path,
    per_batch: int = 2_000_000,
    tell: Tell = nothing,
) -> Lake:
    made = Lake(str(lake))
    settings = Settings(
        url=served.address, events_per_batch=per_batch, events_per_task=per_batch
    )
    Pipeline(spark, made, settings, tell).run()
    return made


def staged(lake: Lake, events: Any) -> dict[str, list[Any]]:
    """Files of events none of whose jobs is known to be whole."""
    bronze = lake["bronze.events"]
    return {"bronze.events": bronze.stage(events), "rest": bronze.stage(events)}


def content(spark: Any, lake: Lake) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table as it is published; counts depend on the cut."""
    found = {}
    for name in lake.tables:
        frame = lake.read(spark, name)
        if name == "bronze.events":
            frame = frame.where("type <> 'count'")
        found[name] = rows_of(_told(frame))
    return found


def _told(frame: Any) -> Any:
    """Sketches by what they say: their bytes depend on the order of adding."""
    ranks = "array(0.0D, 0.25D, 0.5D, 0.75D, 0.95D, 1.0D)"
    columns = []
    for name, kind in frame.dtypes:
        if name == "jobs_sketch":
            told = f"round(theta_sketch_estimate({name})) as {name}"
        elif kind == "binary":
            told = (
                f"case when kll_sketch_get_n_bigint({name}) > 0 then"
                f" kll_sketch_get_quantile_bigint({name}, {ranks}) end as {name}"
            )
        else:
            told = f"`{name}`"
        columns.append(told)
    return frame.selectExpr(*columns)
