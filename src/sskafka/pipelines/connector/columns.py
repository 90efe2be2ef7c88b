"""The columns of the source as an Arrow schema; `spark_schema` has the same columns as a Spark schema."""

import pyarrow as pa

from sskafka.pipelines.connector.spark_schema import HEADER_COLUMN

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


def arrow_schema(*, include_headers: bool) -> pa.Schema:
    return pa.schema([*_COLUMNS, (HEADER_COLUMN, HEADERS_TYPE)] if include_headers else _COLUMNS)
