import pytest

from sskafka.wire.errors import MalformedMessageError
from sskafka.wire.varint import decode_uvarint, encode_uvarint, read_tagged_fields, skip_tagged_fields


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (1023, "ff07"),
        (1024, "8008"),
        (16_383, "ff7f"),
        (16_384, "808001"),
        (2**31 - 1, "ffffffff07"),
        (2**32 - 1, "ffffffff0f"),
    ],
)
def test_values_and_their_bytes(value: int, encoded: str) -> None:
    assert encode_uvarint(value).hex() == encoded
    assert decode_uvarint(b"?" + bytes.fromhex(encoded), 1) == (value, 1 + len(encoded) // 2)


@pytest.mark.parametrize("value", [-1, 2**32])
def test_only_unsigned_32_bit_numbers_are_encoded(value: int) -> None:
    with pytest.raises(ValueError, match="unsigned 32-bit"):
        encode_uvarint(value)


def test_a_varint_has_five_bytes_at_most() -> None:
    with pytest.raises(MalformedMessageError):
        decode_uvarint(b"\x80" * 5 + b"\x01", 0)


@pytest.mark.parametrize("encoded", [b"", b"\x80", b"\x80\x80", b"\x80\x80\x80\x80"])
def test_a_truncated_varint(encoded: bytes) -> None:
    with pytest.raises(IndexError):
        decode_uvarint(encoded, 0)


def test_tagged_fields_are_read_with_their_tags() -> None:
    section = memoryview(bytes.fromhex("02 00 02 6162 81 01 00 ff"))
    fields, position = read_tagged_fields(section, 0)
    assert fields == [(0, b"ab"), (129, b"")]
    assert position == len(section) - 1 == skip_tagged_fields(section, 0)


def test_a_tagged_field_longer_than_the_buffer() -> None:
    section = memoryview(bytes.fromhex("01 00 03 6162"))
    for read in (read_tagged_fields, skip_tagged_fields):
        with pytest.raises(MalformedMessageError):
            read(section, 0)
