"""Messages of formats 0 and 1: what was written is read, and whatever else comes is refused in one way."""

import contextlib
import sys
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from sskafka.records.batch import CorruptBatchError
from sskafka.records.compression import Compression
from sskafka.records.legacy import messages_inside, read_message

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from legacy_messages import compressed, message

FIELDS = st.none() | st.binary(max_size=40)
PAIRS = st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=8)
CODECS = st.sampled_from([Compression.GZIP, Compression.SNAPPY, Compression.LZ4])


@given(PAIRS, CODECS, st.sampled_from([0, 1]), st.integers(0, 2**40))
def test_what_was_compressed_is_read(
    pairs: list[tuple[bytes | None, bytes | None]], codec: Compression, magic: int, base_offset: int
) -> None:
    first = 0 if magic else base_offset
    inner = [message(first + place, key, value, magic=magic) for place, (key, value) in enumerate(pairs)]
    outer = read_message(compressed(codec, base_offset + len(pairs) - 1, inner, magic=magic))
    found = [(one.offset, one.key, one.value, one.is_valid) for one in messages_inside(outer)]
    assert found == [(base_offset + place, key, value, True) for place, (key, value) in enumerate(pairs)]


@given(st.binary(max_size=120))
@example(message(0, b"k", b"v")[:-1])
def test_any_bytes(data: bytes) -> None:
    with contextlib.suppress(CorruptBatchError):
        messages_inside(read_message(data))


@given(PAIRS, CODECS, st.integers(0, 400), st.integers(1, 255))
def test_a_flipped_byte(
    pairs: list[tuple[bytes | None, bytes | None]], codec: Compression, place: int, flip: int
) -> None:
    inner = [message(number, key, value) for number, (key, value) in enumerate(pairs)]
    data = bytearray(compressed(codec, len(pairs) - 1, inner))
    place %= len(data)
    data[place] ^= flip
    with contextlib.suppress(CorruptBatchError):
        found = read_message(data)
        assert not found.is_valid or place < 8  # the offset is not under the checksum
        messages_inside(found)
