"""Rows to write, and a stream of them."""

from pyspark.sql import functions

from headway.spark.session import session

spark = session()
url = "http://127.0.0.1:8080"
columns = "kind string, tenant string, payload string"
frame = spark.createDataFrame([("welcome", "acme", '{"number": 1}')], columns)
ticks = spark.readStream.format("rate").load()
events = ticks.select(functions.lit("welcome").alias("kind"))
