"""The columns of the source in Spark's words: those of Spark's own Kafka source. Arrow's words are in `columns`.

Spark asks for them in processes that need nothing else; without Arrow these start in half the time.
"""

HEADER_COLUMN = "headers"
SPARK_COLUMNS = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int"
)
SPARK_HEADERS = f"{HEADER_COLUMN} array<struct<key: string, value: binary>>"


def spark_schema(*, include_headers: bool) -> str:
    return f"{SPARK_COLUMNS}, {SPARK_HEADERS}" if include_headers else SPARK_COLUMNS
