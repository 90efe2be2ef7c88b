"""Protobuf by a descriptor set: what is read, and what strangers may send."""

import pytest
from tests.support.protobuf_orders import descriptor_set, encoded

from sskafka.records.protobuf import (
    DATA_BYTES_MAX,
    VALUES_MAX,
    ProtobufDataError,
    ProtobufSchema,
    ProtobufSchemaError,
)

SET = descriptor_set().SerializeToString()
FIRST = ProtobufSchema(SET)
LINE = b"\x22"  # field 4, of a length
EMPTY_LINE = b"\x22\x00"


def test_every_kind_of_field() -> None:
    data = encoded(
        id=2**60,
        customer="Zoë",
        at_ms=1_700_000_000_000,
        lines=["a", "b"],
        state=1,
        weight=1.5,
        tags={"x": 5},
        raw=b"\xff",
    )
    assert FIRST.name == "shop.Order"
    assert FIRST.read(data) == {
        "id": 2**60,
        "customer": "Zoë",
        "at": "2023-11-14T22:13:20Z",
        "lines": [{"sku": "a"}, {"sku": "b"}],
        "state": "PAID",
        "weight": 1.5,
        "tags": {"x": 5},
        "raw": b"\xff",
    }
    assert FIRST.read(b"") == {}


def test_values_that_json_or_the_schema_does_not_have() -> None:
    assert FIRST.read(encoded(weight=float("inf"))) == {"weight": "inf"}
    assert FIRST.read(b"\x28\x63") == {"state": 99}
    assert FIRST.read(encoded(id=1) + b"\xd8\x04\x05" * 2) == {"id": 1, "#75": [5, 5]}
    seconds = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
    assert FIRST.read(b"\x1a" + bytes([len(seconds)]) + seconds) == {"at": {"seconds": 2**63 - 1}}


def test_the_prefix_of_a_schema_registry() -> None:
    order, refund = encoded(id=7), encoded("shop.Refund", order=7)
    for prefix in (b"\0\0\0\0\x05\0", b"\0\0\0\0\x05\x02\x00"):
        assert FIRST.read(prefix + order) == {"id": 7}
    assert FIRST.read(b"\0\0\0\0\x05\x02\x02" + refund) == {"order": 7}
    assert FIRST.read(b"\0\0\0\0\x05\x04\x00\x00" + b"\x0a\x01a") == {"sku": "a"}
    named = ProtobufSchema(SET, "shop.Refund")
    assert named.read(b"\0\0\0\0\x05\0" + refund) == named.read(refund) == {"order": 7}


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"\xff\xff", "are not a shop.Order"),
        (b"\x12\x01\xff", "are not a shop.Order"),
        (b"\xd8\x04\x05", "no field of shop.Order"),
        (b"\0", "end within the prefix"),
        (b"\0\0\0\0\x05\xff\xff\xff\xff\xff", "end within the prefix"),
        (b"\0\0\0\0\x05\x7f", "not as the serializer"),
        (b"\0\0\0\0\x05\x02\x20", "has no message 16"),
        (b"\0\0\0\0\x05\x02\x01", "has no message -1"),
        (EMPTY_LINE * (VALUES_MAX + 1), "more than 10,000"),
        (EMPTY_LINE * (DATA_BYTES_MAX // 2 + 1), "more than 1 MiB"),
    ],
)
def test_bytes_that_are_not_read(data: bytes, part: str) -> None:
    with pytest.raises(ProtobufDataError, match=part):
        FIRST.read(data)


def test_many_values_and_deep_ones() -> None:
    assert len(FIRST.read(EMPTY_LINE * VALUES_MAX)["lines"]) == VALUES_MAX
    deep = b""
    for _ in range(60):
        deep = b"\x12" + bytes([len(deep)]) + deep
    assert FIRST.read(LINE + bytes([len(deep)]) + deep)["lines"][0]["parts"]
    deeper = b"\x12\x00"
    while len(deeper) < 120:
        deeper = b"\x12" + bytes([len(deeper)]) + deeper
    for _ in range(100):
        deeper = b"\x12" + bytes([len(deeper) & 0x7F | 0x80, len(deeper) >> 7]) + deeper
    with pytest.raises(ProtobufDataError, match="are not a"):
        FIRST.read(LINE + bytes([len(deeper) & 0x7F | 0x80, len(deeper) >> 7]) + deeper)


def test_descriptor_sets_that_cannot_be_used() -> None:
    incomplete = descriptor_set()
    incomplete.file[0].dependency.append("others.proto")
    wrong = descriptor_set()
    wrong.file[0].message_type[0].field[2].type_name = ".shop.Nothing"
    for data, name, part in (
        (b"", "", "no files"),
        (b"\xff", "", "cannot be used"),
        (SET[:50], "", "cannot be used"),
        (SET, "shop.Absent", "no message 'shop.Absent'"),
        (incomplete.SerializeToString(), "", "lacks others.proto; call protoc with --include_imports"),
        (wrong.SerializeToString(), "", "cannot be used"),
    ):
        with pytest.raises(ProtobufSchemaError, match=part):
            ProtobufSchema(data, name)
