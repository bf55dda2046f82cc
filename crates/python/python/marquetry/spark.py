"""Tables as a data source of Apache Spark 4: docs/spark.md.

>>> import marquetry as mq
>>> spark.dataSource.register(mq.spark.Source)  # doctest: +SKIP
>>> trips = spark.read.format("marquetry").load("trips/*.parquet")  # doctest: +SKIP
"""

try:
    # What came last, with Spark 4.2.
    from pyspark.sql.streaming.datasource import ReadMaxFiles as _
except ImportError as error:
    raise ImportError("marquetry.spark needs PySpark 4.2 or later") from error

import pyarrow  # type: ignore[import-untyped]
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, DataSourceWriter
from pyspark.sql.types import StructType

from ._spark_filters import reader_of
from ._spark_read import Plan
from ._spark_stream import StreamReader
from ._spark_types import spark_schema
from ._spark_write import writer

__all__ = ["Source"]


class Source(DataSource):
    """The format ``marquetry``: whatever :func:`marquetry.open` opens; Parquet directories and clusters to write to; directories in which files appear
    as a stream."""

    @classmethod
    def name(cls) -> str:
        return "marquetry"

    def schema(self) -> StructType:
        plan = Plan(self.options)
        return spark_schema(pyarrow.schema(plan.open().schema), plan.name)

    def reader(self, schema: StructType) -> DataSourceReader:
        return reader_of(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return writer(self.options, schema, overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StreamReader(self.options, schema)
