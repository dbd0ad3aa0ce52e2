"""Waits as a table that SQL can name."""

from headway.spark.lake.lake import Lake
from headway.spark.session import session

spark = session()
Lake("lake").read(spark, "gold.waits").createOrReplaceTempView("waits")
