"""The entry: which reader or writer serves what is asked for."""

from collections.abc import Mapping

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from headway.core.errors import BadValue
from headway.spark.columns import EVENTS, spark_schema
from headway.spark.columns_source import JOBS
from headway.spark.source.encode import check_columns
from headway.spark.source.history import HistoryReader, HistoryStream
from headway.spark.source.jobs import FilteredJobsReader, JobsReader
from headway.spark.source.options import read_options
from headway.spark.source.sink import JobStreamWriter, JobWriter
from headway.spark.source.staging import STAGED

_TABLES = {"history": EVENTS, "jobs": JOBS, "backlog": JOBS}


class HeadwaySource(DataSource):
    """`spark.read.format("headway").option("url", …)`, and the same for writes."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._options = read_options(options)

    @classmethod
    def name(cls) -> str:
        return "headway"

    def schema(self) -> str:
        if self._options.stage_to is not None:
            return spark_schema(STAGED)
        return spark_schema(_TABLES[self._options.table])

    def reader(self, schema: StructType) -> DataSourceReader:
        if self._options.stage_to is not None:
            raise BadValue("stageTo", self._options.stage_to, "only a stream is staged")
        if self._options.table == "history":
            return HistoryReader(self._options)
        if self._options.pushdown:
            return FilteredJobsReader(self._options)
        return JobsReader(self._options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        if self._options.table != "history":
            raise BadValue("table", self._options.table, "a stream reads history")
        return HistoryStream(self._options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        if overwrite:
            raise BadValue("mode", "overwrite", "jobs are appended, and never replaced")
        check_columns(schema, self._options.queue)
        return JobWriter(self._options)

    def streamWriter(
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamArrowWriter:
        if overwrite:
            raise BadValue("mode", "complete", "jobs are appended, and never replaced")
        check_columns(schema, self._options.queue)
        return JobStreamWriter(self._options)
