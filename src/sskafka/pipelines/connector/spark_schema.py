"""The columns of the source as a Spark schema, which is that of Spark's own Kafka source. See also `columns`.

Spark asks for the schema in processes that need nothing else; without Arrow these start in half the time.
"""

HEADER_COLUMN = "headers"
SPARK_COLUMNS = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int"
)
SPARK_HEADERS = f"{HEADER_COLUMN} array<struct<key: string, value: binary>>"


def spark_schema(*, include_headers: bool) -> str:
    return f"{SPARK_COLUMNS}, {SPARK_HEADERS}" if include_headers else SPARK_COLUMNS
