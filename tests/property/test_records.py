from contextlib import suppress

from hypothesis import example, given, settings
from hypothesis import strategies as st

from sskafka.records.batch import CorruptBatchError, read_header
from sskafka.records.builder import NewRecord, build_batch, frame
from sskafka.records.compression import Compression, decompress
from sskafka.records.record import Record, decode_records
from sskafka.records.varint import INT64_BYTES_MAX, encode_varint, read_varint

int64 = st.integers(-(2**63), 2**63 - 1)
timestamps = st.integers(-1, 2**53)
headers = st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=10)), max_size=3).map(tuple)
new_records = st.builds(
    NewRecord, st.none() | st.binary(max_size=200), st.none() | st.binary(max_size=200), headers, timestamps
)


@settings(deadline=None)  # machines may be busy
@given(int64)
@example(2**63 - 1)
@example(-(2**63))
def test_varints_round_trip(value: int) -> None:
    encoded = encode_varint(value)
    assert read_varint(encoded, 0, INT64_BYTES_MAX) == (value, len(encoded))


@settings(deadline=None)  # machines may be busy
@given(st.lists(new_records, max_size=20), st.sampled_from(Compression), st.integers(0, 2**40))
def test_batches_round_trip(records: list[NewRecord], codec: Compression, base_offset: int) -> None:
    batch = build_batch(records, base_offset=base_offset, compression=codec)
    assert list(decode_records(batch, read_header(batch))) == [
        Record(base_offset + place, record.timestamp, record.key, record.value, record.headers)
        for place, record in enumerate(records)
    ]


@settings(deadline=None)  # machines may be busy
@given(st.binary(max_size=200), st.integers(-2, 300), st.integers(0, 7))
def test_random_payloads_are_decoded_or_corrupt(payload: bytes, count: int, codec: int) -> None:
    header = read_header(build_batch([]))._replace(record_count=count, attributes=codec)
    with suppress(CorruptBatchError):
        list(decode_records(frame(header, payload), header._replace(length=49 + len(payload)), max_bytes=100_000))


@settings(deadline=None)  # machines may be busy
@given(st.lists(new_records, min_size=1, max_size=3), st.sampled_from(Compression), st.data())
def test_damaged_payloads_are_decoded_or_corrupt(
    records: list[NewRecord], codec: Compression, data: st.DataObject
) -> None:
    batch = build_batch(records, compression=codec)
    at = data.draw(st.integers(61, len(batch) - 1))
    batch[at] ^= data.draw(st.integers(1, 255))
    with suppress(CorruptBatchError):
        list(decode_records(batch, read_header(batch), max_bytes=100_000))


@settings(deadline=None)  # machines may be busy
@given(st.binary(max_size=100), st.sampled_from(Compression))
def test_random_bytes_never_unfold_beyond_the_bound(data: bytes, codec: Compression) -> None:
    with suppress(CorruptBatchError):
        assert len(decompress(codec, data, 1000)) <= max(1000, len(data))
