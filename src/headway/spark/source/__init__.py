"""`format("headway")`: a server as a source and a sink of Spark."""

from headway.spark.source.format import HeadwaySource

__all__ = ["HeadwaySource"]
