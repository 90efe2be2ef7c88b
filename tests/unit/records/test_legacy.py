import lz4.frame
import pytest
from legacy_messages import compressed, message

from sskafka.records.batch import CorruptBatchError
from sskafka.records.compression import Compression
from sskafka.records.legacy import LegacyMessage, messages_inside, read_message
from sskafka.records.lz4_frame import with_correct_checksum, xxhash32_short

CODECS = (Compression.GZIP, Compression.SNAPPY, Compression.LZ4)


def test_format_0_has_no_timestamp() -> None:
    data = message(7, b"key", None, magic=0)
    found = read_message(data)
    assert found == LegacyMessage(7, len(data), found.crc, 0, 0, -1, b"key", None, is_valid=True)
    assert messages_inside(found) == [found]


def test_format_1_has_a_timestamp() -> None:
    data = b"before" + message(7, None, b"value", timestamp=1234) + b"behind"
    found = read_message(data, len(b"before"))
    assert (found.offset, found.timestamp, found.key, found.value) == (7, 1234, None, b"value")
    assert found.size_bytes == len(data) - len(b"before") - len(b"behind")


@pytest.mark.parametrize("codec", CODECS)
def test_inner_offsets_of_format_0_are_absolute(codec: Compression) -> None:
    inner = [message(offset, b"k", b"v%d" % offset, magic=0) for offset in (5, 6, 9)]
    found = messages_inside(read_message(compressed(codec, 9, inner, magic=0)))
    assert [(one.offset, one.value) for one in found] == [(5, b"v5"), (6, b"v6"), (9, b"v9")]
    assert all(one.is_valid for one in found)


@pytest.mark.parametrize("codec", CODECS)
def test_inner_offsets_of_format_1_are_relative(codec: Compression) -> None:
    inner = [message(number, None, b"v", timestamp=100 + number) for number in (0, 1, 4)]
    found = messages_inside(read_message(compressed(codec, 104, inner, timestamp=104)))
    assert [(one.offset, one.timestamp) for one in found] == [(100, 100), (101, 101), (104, 104)]


def test_log_append_time_is_that_of_the_outer_message() -> None:
    inner = [message(number, None, b"v", timestamp=number) for number in range(2)]
    outer = read_message(compressed(Compression.GZIP, 1, inner, timestamp=777, append_time=True))
    assert [(one.timestamp, one.uses_append_time) for one in messages_inside(outer)] == [(777, True)] * 2


def test_a_damaged_message_is_invalid() -> None:
    data = bytearray(message(0, b"key", b"value"))
    data[-1] ^= 1
    assert not read_message(data).is_valid


@pytest.mark.parametrize("size", range(34))
def test_every_truncated_message_is_rejected(size: int) -> None:
    data = message(0, None, None)
    assert len(data) == 34
    with pytest.raises(CorruptBatchError):
        read_message(data[:size])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (message(0, None, b"v", magic=0)[:16] + b"\x02" + bytes(20), "not that of a legacy"),
        (bytes(11) + b"\x05" + bytes(30), "shorter than its fixed fields"),
        (compressed(Compression.GZIP, 0, []), "is empty"),
        (compressed(Compression.GZIP, 0, [message(0, None, b"v", magic=0)]), "format 0 is nested in one of format 1"),
        (compressed(Compression.GZIP, 0, [compressed(Compression.GZIP, 0, [message(0, None, b"v")])]), "compressed"),
        (message(0, None, b"not gzip", attributes=1), "cannot decompress"),
        (message(0, None, b"", attributes=7), "compression type 7"),
    ],
)
def test_invalid_messages_are_rejected(data: bytes, words: str) -> None:
    with pytest.raises(CorruptBatchError, match=words):
        messages_inside(read_message(data))


@pytest.mark.parametrize("content_size", [False, True])
def test_checksums_of_lz4_frames(content_size: bool) -> None:
    """Compare with a library that writes correct checksums."""
    right = lz4.frame.compress(b"some data" * 100, store_size=content_size)
    at = 14 if content_size else 6
    wrong = right[:at] + bytes([right[at] ^ 0xFF]) + right[at + 1 :]
    assert with_correct_checksum(wrong) == right
    assert with_correct_checksum(b"short") == b"short"


def test_published_values_of_xxhash32() -> None:
    assert xxhash32_short(b"") == 0x02CC5D05
    assert xxhash32_short(b"a") == 0x550D7456
    assert xxhash32_short(b"abc") == 0x32D153FF
