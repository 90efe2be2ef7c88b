"""What `inspect_records` accepts, a decoder can read; what it says of timestamps and keys is true."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lying_batches import HARMLESS, RECORD_LIES, record

from sskafka.records.batch import CorruptBatchError, read_header
from sskafka.records.builder import NewRecord, build_batch, frame
from sskafka.records.inspection import RecordsSummary, inspect_records
from sskafka.records.record import decode_records

NOW_MS = 1_700_000_000_000


def payload_of(records: list[NewRecord]) -> bytes:
    return bytes(build_batch(records))[61:]


def truth_about(records: list[NewRecord]) -> RecordsSummary:
    deltas = [record.timestamp - records[0].timestamp for record in records]
    return RecordsSummary(min(deltas), max(deltas), all(record.key is not None for record in records))


@pytest.mark.parametrize("name", RECORD_LIES)
def test_lies_about_records_are_found(name: str) -> None:
    if name in HARMLESS or name == "timestamp delta huge":  # the range of timestamps is up to the topic
        inspect_records(RECORD_LIES[name], 3)
    else:
        with pytest.raises(CorruptBatchError):
            inspect_records(RECORD_LIES[name], 3)


SHAPES = {
    "same timestamps": lambda n: NewRecord(b"key", b"v" * 100, (), NOW_MS),
    "no keys": lambda n: NewRecord(None, b"v" * 100, (), NOW_MS),
    "no values": lambda n: NewRecord(b"k%05d" % n, None, (), NOW_MS),
    "rising timestamps": lambda n: NewRecord(b"key", b"v" * 10, (), NOW_MS + n // 3),
    "falling timestamps": lambda n: NewRecord(b"key", b"v" * 10, (), NOW_MS - n),
    "far timestamps": lambda n: NewRecord(b"key", b"v", (), NOW_MS + n * 100_000),
    "headers": lambda n: NewRecord(b"key", b"v" * 10, (("a", b"b"), ("c", None)), NOW_MS),
    "empty": lambda n: NewRecord(b"", b"", (), NOW_MS),
    "two lengths in turn": lambda n: NewRecord(b"key", b"v" * (10 + n % 2), (), NOW_MS),
    "one odd record": lambda n: NewRecord(None if n == 50 else b"key", b"v" * 10, (), NOW_MS - (n == 70)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 2, 9, 63, 64, 65, 66, 200, 1100, 8191, 8192, 8200, 8210, 20_000])
def test_batches_of_every_size_are_summarized(shape: str, count: int) -> None:
    records = [SHAPES[shape](n) for n in range(count)]
    assert inspect_records(payload_of(records), count) == truth_about(records)


def test_offsets_beyond_the_tables_are_checked() -> None:
    count = 66_000
    payload = payload_of([NewRecord(b"key", b"v", (), NOW_MS)] * count)
    assert inspect_records(payload, count) == RecordsSummary(0, 0, True)
    wrong = payload[: -len(record(0))] + record(count - 2, timestamp_delta=b"\0")
    with pytest.raises(CorruptBatchError):
        inspect_records(wrong, count)


@pytest.mark.parametrize("position", [0, 1, 7, 8, 40, 63, 64, 65, 100, 1023, 1024, 1500, 1999])
@pytest.mark.parametrize("field", range(7))
def test_a_lie_within_a_run_is_found(position: int, field: int) -> None:
    """Every field of a record in the middle of 2,000 of the same shape."""
    records = [record(n, timestamp_delta=b"\0") for n in range(2000)]
    assert inspect_records(b"".join(records), 2000)
    one = record(position, timestamp_delta=b"\0")
    offset_bytes = 1 if position < 64 else 2
    places = [0, 3, 3 + offset_bytes, 4 + offset_bytes, 5 + offset_bytes, 6 + offset_bytes, 7 + offset_bytes]
    at = places[field]
    if at >= len(one) or field == 3:  # the byte of the key may be anything
        return
    records[position] = one[:at] + bytes([one[at] ^ 2]) + one[at + 1 :]
    if field == 5:  # the byte of the value may be anything, too
        inspect_records(b"".join(records), 2000)
        return
    with pytest.raises(CorruptBatchError):
        inspect_records(b"".join(records), 2000)


records = st.lists(
    st.builds(
        NewRecord,
        st.none() | st.binary(max_size=70),
        st.none() | st.binary(max_size=200),
        st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=4)), max_size=2).map(tuple),
        st.integers(0, 2**40),
    ),
    min_size=1,
    max_size=80,
)


@settings(max_examples=150, deadline=None)
@given(records, st.randoms(use_true_random=False))
def test_what_passes_can_be_decoded(written: list[NewRecord], chance: random.Random) -> None:
    """Also after random damage: either the inspection rejects it, or a decoder reads offsets without a gap."""
    batch = build_batch(written)
    header = read_header(batch)
    payload = bytearray(batch[61:])
    assert inspect_records(bytes(payload), len(written)) == truth_about(written)
    for _ in range(20):
        damaged = bytearray(payload)
        for _ in range(chance.randint(1, 3)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            summary = inspect_records(bytes(damaged), len(written))
        except CorruptBatchError:
            continue
        again = frame(header, damaged)
        decoded = list(decode_records(again, read_header(again)))
        assert [one.offset for one in decoded] == list(range(len(written)))
        deltas = [one.timestamp - header.base_timestamp for one in decoded]
        assert summary == RecordsSummary(min(deltas), max(deltas), all(one.key is not None for one in decoded))


def test_the_walk_pauses() -> None:
    pauses: list[int] = []
    payload = payload_of([NewRecord(b"k" * (n % 7), b"v", (), NOW_MS) for n in range(1000)])
    inspect_records(payload, 1000, lambda: pauses.append(1))
    assert len(pauses) == 3
    many_headers = payload_of([NewRecord(b"k", b"v", (("h", b""),) * 1000, NOW_MS)])
    inspect_records(many_headers, 1, lambda: pauses.append(1))
    assert len(pauses) == 6


def outcome(payload: bytes | bytearray, count: int, *, shortcuts: bool = True) -> RecordsSummary | str:
    try:
        return inspect_records(payload, count, shortcuts=shortcuts)
    except CorruptBatchError as error:
        return str(error)


@pytest.mark.parametrize("position", [0, 1, 63, 64, 65, 100, 8191, 8192])
@pytest.mark.parametrize("is_run", [True, False], ids=["run", "lengths in turn"])
def test_shortcuts_find_what_the_careful_check_finds(position: int, is_run: bool) -> None:
    """Every value of every byte before the value of one record, in a batch of usual records."""
    count = position + 12
    written = [NewRecord(b"k", b"v" * (3 + (0 if is_run else n % 2)), (), NOW_MS + n // 50) for n in range(count)]
    payload = payload_of(written)
    start = len(payload_of(written[:position])) if position else 0
    damaged = [
        payload[:at] + bytes([value]) + payload[at + 1 :]
        for at in range(start, start + 8)
        for value in (*range(0, 256, 64 if position > 1000 else 1), payload[at] ^ 0x80, payload[at] ^ 1)
    ]
    found = [outcome(one, count) for one in damaged]
    assert found == [outcome(one, count, shortcuts=False) for one in damaged]


@pytest.mark.parametrize("window_bytes", [64, 1000, 1 << 20])
def test_buffers_are_checked_in_windows(window_bytes: int) -> None:
    sizes = [0, 1, 7, 40, 63, 64, 200, 5000, 3, 100, 8200, 2] * 30
    written = [NewRecord(b"key", b"v" * size, (("h", b"x" * (size % 5)),), NOW_MS + size) for size in sizes]
    payload = bytearray(payload_of(written))
    assert inspect_records(payload, len(written), window_bytes=window_bytes) == truth_about(written)
    assert inspect_records(memoryview(payload), len(written), window_bytes=window_bytes) == truth_about(written)
    for cut in (1, 5, 100, 3000):
        with pytest.raises(CorruptBatchError):
            inspect_records(payload[:-cut], len(written), window_bytes=window_bytes)
    payload[len(payload_of(written[:100]))] ^= 2  # the length of a record in the middle
    with pytest.raises(CorruptBatchError) as of_windows:
        inspect_records(payload, len(written), window_bytes=window_bytes)
    with pytest.raises(CorruptBatchError) as of_all:
        inspect_records(bytes(payload), len(written))
    assert type(of_windows.value) is type(of_all.value)


def test_a_bytearray_is_checked_with_pauses() -> None:
    pauses: list[int] = []
    payload = bytearray(payload_of([NewRecord(b"k" * (n % 7), b"v" * 50, (), NOW_MS) for n in range(1000)]))
    assert inspect_records(payload, 1000, lambda: pauses.append(1), 4096) == RecordsSummary(0, 0, True)
    assert len(pauses) >= 3
