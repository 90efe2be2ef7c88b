"""What the bytes of records are shown as."""

import io
from base64 import b64decode
from typing import Any

import fastavro
import pytest

from sskafka.records.avro import avro_reader
from sskafka.servers.http.browsing.payloads import Encoding, Schema, header_name, shown_bytes, skipping_registry_prefix
from sskafka.servers.http.browsing.schemas import AVRO_BYTES_MAX, avro_schema


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        (None, Encoding.NULL, ""),
        (b"", Encoding.TEXT, ""),
        (b"hello", Encoding.TEXT, "hello"),
        ("Zoë ☃".encode(), Encoding.TEXT, "Zoë ☃"),
        (b'  {"a": 1}', Encoding.JSON, '  {"a": 1}'),
        (b"[1, 2]", Encoding.JSON, "[1, 2]"),
        (b"{broken", Encoding.TEXT, "{broken"),
        (b"5", Encoding.TEXT, "5"),
        (b"[" * 50_000, Encoding.TEXT, "[" * 50_000),
        (b"<script>alert(1)</script>", Encoding.TEXT, "<script>alert(1)</script>"),
        (b"\xff\xfe", Encoding.BASE64, "//4="),
        (b"{\xff", Encoding.BASE64, "e/8="),
        (b"a\0b", Encoding.BASE64, "YQBi"),
    ],
)
def test_encodings(data: bytes | None, encoding: Encoding, text: str) -> None:
    shown = shown_bytes(data, 100_000)
    assert (shown.encoding, shown.data, shown.is_truncated) == (encoding, text, False)
    assert shown.size_bytes == len(data or b"")


def test_large_values_are_cut_between_characters() -> None:
    shown = shown_bytes("aëë".encode() * 1_000, 4)
    assert (shown.data, shown.is_truncated, shown.size_bytes) == ("aë", True, 5_000)
    cut = shown_bytes(bytes(range(128, 256)) * 100, 1_000)
    assert (len(b64decode(cut.data)), cut.is_truncated) == (999, True)
    assert shown_bytes(b"\xff" * 10, 1).data == "////"


SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "raw", "type": "bytes"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


def encoded(value: dict[str, Any]) -> bytes:
    target = io.BytesIO()
    fastavro.schemaless_writer(target, SCHEMA, value)
    return target.getvalue()


def test_avro_with_and_without_the_prefix_of_a_registry() -> None:
    schema = Schema(Encoding.AVRO, skipping_registry_prefix(avro_reader(SCHEMA)))
    data = encoded({"id": 5, "raw": b"\x01\xff", "at": 1_700_000_000_000})
    expected = '{"id": 5, "raw": "01ff", "at": "2023-11-14T22:13:20+00:00"}'
    for stored in (data, b"\0\0\0\0\x07" + data):
        shown = shown_bytes(stored, 1_000, schema)
        assert (shown.encoding, shown.data, shown.size_bytes) == (Encoding.AVRO, expected, len(stored))


def test_bytes_of_another_schema_are_shown_with_the_reason() -> None:
    shown = shown_bytes(b"hello", 1_000, Schema(Encoding.AVRO, skipping_registry_prefix(avro_reader(SCHEMA))))
    assert (shown.encoding, shown.data) == (Encoding.TEXT, "hello")
    assert shown.problem is not None
    assert "do not follow the schema" in shown.problem


def test_names_of_headers_that_are_not_text() -> None:
    assert header_name(b"a\xffb".decode(errors="surrogateescape")) == "a\\xffb"
    assert header_name("Zoë") == "Zoë"


def test_avro_data_is_decoded_up_to_a_size() -> None:
    """A byte may be a record in an array: decoding takes a second for a megabyte."""
    items = {"type": "record", "name": "Item", "fields": [{"name": "a", "type": "boolean"}]}
    schema = avro_schema({"type": "array", "items": items})
    target = io.BytesIO()
    fastavro.schemaless_writer(target, {"type": "array", "items": items}, [{"a": True}] * AVRO_BYTES_MAX)
    shown = shown_bytes(target.getvalue(), 1_000, schema)
    assert shown.encoding is not Encoding.AVRO
    assert shown.problem == "Avro data of more than 256 KiB is not decoded here"
