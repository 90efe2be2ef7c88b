import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from sskafka.pipelines.files.avro_schema import decoder_of, parse_avro_schema, spark_columns
from sskafka.records.avro import AvroDataError, AvroSchemaError
from sskafka.records.varint import encode_varint

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": ["null", "string"]},
        {"name": "price", "type": "double"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
        {"name": "paid", "type": "boolean"},
    ],
}


def text(value: str) -> bytes:
    return encode_varint(len(value)) + value.encode()


ENCODED = b"".join(
    (
        encode_varint(-7),
        encode_varint(1) + text("ann"),
        struct.pack("<d", 2.5),
        encode_varint(2) + text("x") + text("y") + encode_varint(0),
        encode_varint(-1) + encode_varint(3) + text("n") + encode_varint(4) + encode_varint(0),
        encode_varint(1),
        b"\x01\x02",
        b"\x01",
    )
)


def test_every_kind_of_field() -> None:
    assert decoder_of(SCHEMA)(ENCODED) == {
        "id": -7,
        "user": "ann",
        "price": 2.5,
        "tags": ["x", "y"],
        "counts": {"n": 4},
        "kind": "B",
        "hash": b"\x01\x02",
        "paid": True,
    }


def test_logical_types_become_spark_s_and_others_stay_as_they_are_stored() -> None:
    schema = {
        "type": "record",
        "name": "Payment",
        "fields": [
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "exactly", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
            {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
            {"name": "daily", "type": {"type": "int", "logicalType": "time-millis"}},
            {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        ],
    }
    encoded = b"".join(
        (
            encode_varint(1_700_000_000_123),
            encode_varint(1) + encode_varint(1_700_000_000_123_456),
            encode_varint(1_700_000_000_123),
            encode_varint(19_675),
            encode_varint(2) + (12345).to_bytes(2, "big", signed=True),
            encode_varint(1000),
            text("not-a-uuid"),
        )
    )
    assert decoder_of(schema)(encoded) == {
        "at": datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
        "exactly": datetime(2023, 11, 14, 22, 13, 20, 123456, UTC),
        "local": datetime(2023, 11, 14, 22, 13, 20, 123000),
        "day": date(2023, 11, 14),
        "amount": Decimal("123.45"),
        "daily": 1000,
        "id": "not-a-uuid",
    }
    assert spark_columns(schema) == (
        "`at` timestamp, `exactly` timestamp, `local` timestamp_ntz, `day` date, `amount` decimal(6,2), "
        "`daily` int, `id` string"
    )


def test_spark_types() -> None:
    assert spark_columns(SCHEMA) == (
        "`id` bigint, `user` string, `price` double, `tags` array<string>, `counts` map<string,int>, "
        "`kind` string, `hash` binary, `paid` boolean"
    )


@pytest.mark.parametrize("end", range(len(ENCODED)))
def test_bytes_that_end_early_are_refused(end: int) -> None:
    with pytest.raises(AvroDataError):
        decoder_of(SCHEMA)(ENCODED[:end])


def test_bytes_behind_the_record_mean_another_schema() -> None:
    with pytest.raises(AvroDataError, match="another schema"):
        decoder_of(SCHEMA)(ENCODED + b"\x00")


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        ("{", "not JSON"),
        ('"string"', "must be a record"),
        (json.dumps({"type": "record", "name": "A"}), "no list of fields"),
        (json.dumps({"type": "record", "name": "A", "fields": [{"name": "x"}]}), "lacks its name or type"),
        (json.dumps({"type": "record", "name": "A", "fields": [{"name": "x", "type": "strin"}]}), "no Avro type"),
        (json.dumps({"type": "record", "name": "A", "fields": [{"name": "x", "type": ["int", "string"]}]}), "branches"),
    ],
)
def test_schemas_that_cannot_be_used(schema: str, part: str) -> None:
    with pytest.raises(AvroSchemaError, match=part):
        parse_avro_schema(schema)
