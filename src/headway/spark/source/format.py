"""The entry: which reader or writer serves what is asked for."""

from collections.abc import Mapping

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from headway.core.errors import BadValue
from headway.spark.columns import EVENTS, spark_schema
from headway.spark.source.history import HistoryReader, HistoryStream
from headway.spark.source.options import read_options


class HeadwaySource(DataSource):
    """`spark.read.format("headway").option("url", …)`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._options = read_options(options)

    @classmethod
    def name(cls) -> str:
        return "headway"

    def schema(self) -> str:
        if self._options.table != "history":
            raise BadValue("table", self._options.table, "known is history")
        return spark_schema(EVENTS)

    def reader(self, schema: StructType) -> DataSourceReader:
        return HistoryReader(self._options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return HistoryStream(self._options)
