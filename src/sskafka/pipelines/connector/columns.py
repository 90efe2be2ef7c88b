"""The columns of the source, in Spark's words and in Arrow's. They are those of Spark's own Kafka source."""

import pyarrow as pa

HEADER_COLUMN = "headers"
SPARK_COLUMNS = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int"
)
SPARK_HEADERS = f"{HEADER_COLUMN} array<struct<key: string, value: binary>>"

HEADERS_TYPE = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))
TIMESTAMP_TYPE = pa.timestamp("us", tz="UTC")

_COLUMNS = [
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", TIMESTAMP_TYPE),
    ("timestampType", pa.int32()),
]


def spark_schema(*, include_headers: bool) -> str:
    return f"{SPARK_COLUMNS}, {SPARK_HEADERS}" if include_headers else SPARK_COLUMNS


def arrow_schema(*, include_headers: bool) -> pa.Schema:
    return pa.schema([*_COLUMNS, (HEADER_COLUMN, HEADERS_TYPE)] if include_headers else _COLUMNS)
