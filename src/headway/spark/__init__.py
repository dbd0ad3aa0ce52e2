"""The data pipeline: history to tables, answers and plans, on Spark.

An optional extra, `headway[spark]`. Nothing outside this package imports it but the
command line, when one of its commands is asked for.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: "SparkSession") -> None:
    """Makes `format("headway")` known to a session, and lets it take filters."""
    from headway.spark import session

    session.register(spark)
