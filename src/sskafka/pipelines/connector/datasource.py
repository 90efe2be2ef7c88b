"""The data source that Spark finds under the name `sskafka`.

Spark imports this module in all of its Python processes, and each of them needs only a part of the connector. Therefore
the modules for reading and writing are imported when they are used.
"""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from sskafka.pipelines.connector.errors import ConnectorError
from sskafka.pipelines.connector.options import includes_headers, sink_options, source_options
from sskafka.pipelines.connector.spark_process import end_quietly_without_java, skip_imported_objects
from sskafka.pipelines.connector.spark_schema import spark_schema

end_quietly_without_java()  # Spark loads this module in its processes


class SSKafkaDataSource(DataSource):
    """Topics as tables and streams; the options are those of Spark's own Kafka source."""

    @classmethod
    def name(cls) -> str:
        return "sskafka"

    def schema(self) -> str:
        return spark_schema(include_headers=includes_headers(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        from sskafka.pipelines.connector.source import (  # noqa: PLC0415  see above
            BatchReader,
            FilteringReader,
            is_pushing_filters,
        )

        self._check_schema(schema)
        reader = FilteringReader if is_pushing_filters() else BatchReader
        return reader(source_options(self.options, streaming=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from sskafka.pipelines.connector.source import StreamReader  # noqa: PLC0415  see above

        self._check_schema(schema)
        return StreamReader(source_options(self.options, streaming=True))

    def _check_schema(self, schema: StructType) -> None:
        """Raise if the user has specified a schema: the columns are fixed."""
        from sskafka.pipelines.connector.columns import arrow_schema  # noqa: PLC0415  see above

        requested = [field.name for field in schema.fields]
        fixed = arrow_schema(include_headers=includes_headers(self.options)).names
        if requested != fixed:
            raise ConnectorError(
                f"the columns of a topic are {', '.join(fixed)}; they cannot be changed to {', '.join(requested)}. "
                "Remove schema(...); from_json reads the value"
            )

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from sskafka.pipelines.connector.sink import (  # noqa: PLC0415  see above
            BatchWriter,
            NumberedBatchWriter,
            check_columns,
        )

        skip_imported_objects()
        if overwrite:
            raise ConnectorError("a topic cannot be overwritten; use mode append")
        options = sink_options(self.options)
        check_columns(schema, options)
        return NumberedBatchWriter(options) if options.query_id else BatchWriter(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from sskafka.pipelines.connector.sink import StreamWriter, check_columns  # noqa: PLC0415  see above

        skip_imported_objects()
        options = sink_options(self.options)
        check_columns(schema, options)
        return StreamWriter(options)
