"""The data pipeline: history to tables, answers and plans, on Spark.

An optional extra, `headway[spark]`. Nothing outside this package imports it but the
command line, when one of its commands is asked for.
"""
