"""A driver of its own: writes many jobs, some of its tasks slow, some failing.

`python -m tests.spark.driver MASTER URL COUNT PARTITIONS WRITE_ID TROUBLE`
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from headway.spark.session import session


def troubled(last: int) -> Callable[[Iterator[pa.RecordBatch]], Any]:
    """First attempts: some break in the middle, and the last one is slow."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        is_first = task.attemptNumber() == 0
        partition = task.partitionId()
        for number, batch in enumerate(batches):
            yield batch
            if is_first and partition % 5 == 1 and number == 2:
                raise RuntimeError("planted: this attempt breaks")
            if is_first and partition == last and number >= 4:
                # It has sent some, and sends more beside the one made in its place.
                threading.Event().wait(5.0)

    return pass_on


def jobs(spark: Any, count: int, partitions: int, trouble: bool) -> Any:
    frame = spark.range(0, count, 1, partitions).selectExpr(
        "concat('k', id % 7) as kind",
        "concat('t', id % 1000) as tenant",
        "to_json(named_struct('id', id)) as payload",
        "cast(60000 as bigint) as slo_ms",
    )
    if not trouble:
        return frame
    return frame.mapInArrow(troubled(partitions - 1), frame.schema)


def main(arguments: list[str]) -> None:
    master, url, count, partitions, write_id, trouble = arguments
    spark = session(
        "driver",
        master,
        {
            "spark.driver.memory": "1g",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.task.maxFailures": "4",
            "spark.speculation": "true",
            "spark.speculation.interval": "200ms",
            "spark.speculation.multiplier": "1.2",
            "spark.speculation.quantile": "0.3",
            "spark.speculation.minTaskRuntime": "1s",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
        },
    )
    began_s = time.perf_counter()
    frame = jobs(spark, int(count), int(partitions), trouble == "trouble")
    writer = frame.write.format("headway").option("url", url).option("queue", "mail")
    writer.option("writeId", write_id).mode("append").save()
    sys.stdout.write(f"wrote in {time.perf_counter() - began_s:.2f} s\n")
    sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
