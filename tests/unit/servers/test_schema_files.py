"""Schemas of requests, and those in a directory of the broker."""

import json
import os
from base64 import b64encode
from pathlib import Path

import pytest
from tests.support.protobuf_orders import descriptor_set, encoded

from sskafka.servers.http.browsing.payloads import Encoding, shown_bytes
from sskafka.servers.http.browsing.schema_files import FILE_BYTES_MAX, SchemaFiles
from sskafka.servers.http.browsing.schemas import SchemaError, parse_schema

AVRO = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
SET = descriptor_set().SerializeToString()


def test_schemas_of_requests() -> None:
    avro = parse_schema(json.dumps(AVRO))
    assert (avro.encoding, avro.name, avro.read(b"\x0a")) == (Encoding.AVRO, "Order", {"id": 5})
    assert parse_schema('"long"').read(b"\x0a") == 5
    text = json.dumps({"protobuf": b64encode(SET).decode(), "message": "shop.Refund"})
    protobuf = parse_schema(text)
    assert (protobuf.encoding, protobuf.name) == (Encoding.PROTOBUF, "shop.Refund")
    shown = shown_bytes(encoded("shop.Refund", order=7), 100, protobuf)
    assert (shown.encoding, shown.data, shown.size_bytes) == (Encoding.PROTOBUF, '{"order": 7}', 2)
    other = shown_bytes(b"hello", 100, protobuf)
    assert (other.encoding, other.data) == (Encoding.TEXT, "hello")
    assert "are not a shop.Refund" in str(other.problem)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"protobuf": "%"}', "not base64"),
        ('{"protobuf": ""}', "no files"),
        ('{"protobuf": 5}', "not base64"),
        ('{"type": "record"}', "no list of fields"),
    ],
)
def test_texts_that_are_no_schema(text: str, part: str) -> None:
    with pytest.raises(SchemaError, match=part):
        parse_schema(text)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "google.protobuf.message", None)
    with pytest.raises(SchemaError, match=r"sskafka\[protobuf\]"):
        parse_schema(json.dumps({"protobuf": b64encode(SET).decode()}))


def test_files_of_topics(tmp_path: Path) -> None:
    files = SchemaFiles(str(tmp_path))
    assert files.find("orders", "value") is None
    (tmp_path / "orders-value.desc").write_bytes(SET)
    (tmp_path / "orders-key.avsc").write_text(json.dumps(AVRO))
    (tmp_path / "refunds-value.shop.Refund.desc").write_bytes(SET)
    (tmp_path / "a.b-value.x-value.desc").write_bytes(SET)
    key, value = files.find("orders", "key"), files.find("orders", "value")
    assert key is not None
    assert value is not None
    assert (key.encoding, value.encoding, value.name) == (Encoding.AVRO, Encoding.PROTOBUF, "shop.Order")
    refund = files.find("refunds", "value")
    assert refund is not None
    assert refund.name == "shop.Refund"
    assert files.find("a.b", "value") is None, "that file is of the topic a.b-value.x"
    assert files.find("a.b-value.x", "value") is not None
    for topic in ("../orders", "order", "orders-value", "", "refunds-value.shop"):
        assert files.find(topic, "value") is None
    assert files.find("orders", "value") is value, "it is kept"
    for without in (SchemaFiles(""), SchemaFiles(None), SchemaFiles(str(tmp_path / "absent"))):
        assert without.find("orders", "value") is None


def test_changed_and_unusable_files(tmp_path: Path) -> None:
    path = tmp_path / "orders-value.desc"
    files = SchemaFiles(str(tmp_path))
    for data, part in ((b"", "no files"), (b"\xff" * 10, "cannot be used"), (b"x" * (FILE_BYTES_MAX + 1), "4 MiB")):
        path.write_bytes(data)
        found = files.find("orders", "value")
        assert found is not None
        assert part in str(found.problem)
        assert f"schema {path.name}" in str(shown_bytes(b"hello", 100, found).problem)
    path.write_bytes(SET)
    os.utime(path, ns=(1, 1))
    found = files.find("orders", "value")
    assert found is not None
    assert found.problem is None
    avro = tmp_path / "others-value.avsc"
    avro.write_text("{")
    assert "not JSON" in str(files.find("others", "value") and files.find("others", "value").problem)  # type: ignore[union-attr]
