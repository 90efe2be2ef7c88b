"""Bulk decoding against the record-by-record decoder, which is tested against Kafka's own batches elsewhere."""

import random
from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sskafka.client.fetched import CompletedFetch
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.columns import arrow_schema
from sskafka.pipelines.connector.decode import read_batches, to_arrow
from sskafka.pipelines.connector.offsets import OffsetRange
from sskafka.records.batch import CorruptBatchError
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.compression import Compression
from sskafka.records.control import ControlType, EndTransactionMarker, control_key

PARTITION = TopicPartition("orders", 3)
ALL = OffsetRange(PARTITION, 0, 1 << 60)

contents = st.one_of(st.none(), st.binary(max_size=200), st.binary(min_size=60, max_size=70))
header_lists = st.lists(st.tuples(st.text(max_size=4), st.one_of(st.none(), st.binary(max_size=4))), max_size=2)
records = st.builds(
    NewRecord,
    key=contents,
    value=contents,
    headers=header_lists.map(tuple),
    timestamp=st.integers(min_value=0, max_value=1 << 41),
)


def log_of(batches: Sequence[Sequence[NewRecord]], codec: Compression = Compression.NONE) -> bytes:
    log, offset = bytearray(), 0
    for batch in batches:
        log += build_batch(batch, base_offset=offset, compression=codec)
        offset += len(batch)
    return bytes(log)


def decoded(log: bytes, wanted: OffsetRange = ALL) -> pa.RecordBatch:
    return to_arrow(read_batches(log, wanted).batches, wanted, include_headers=True)


def expected_rows(log: bytes, wanted: OffsetRange = ALL) -> list[tuple[object, ...]]:
    one_by_one = CompletedFetch(PARTITION, log, wanted.start)
    return [
        (record.offset, record.timestamp, record.key, record.value, list(record.headers))
        for record in one_by_one
        if record.offset < wanted.end
    ]


def rows(batch: pa.RecordBatch) -> list[tuple[object, ...]]:
    return [
        (
            row["offset"],
            round(row["timestamp"].timestamp() * 1000),
            row["key"],
            row["value"],
            [(header["key"], header["value"]) for header in row["headers"] or ()],
        )
        for row in batch.to_pylist()
    ]


@settings(deadline=None)
@given(st.lists(st.lists(records, min_size=1, max_size=20), min_size=1, max_size=4), st.sampled_from(Compression))
def test_the_same_rows_as_one_by_one(batches: list[list[NewRecord]], codec: Compression) -> None:
    log = log_of(batches, codec)
    assert rows(decoded(log)) == expected_rows(log)


@pytest.mark.parametrize("size", [0, 1, 50, 56, 57, 58, 59, 60, 61, 62, 100, 8180, 8190])
def test_runs_of_equal_records_across_every_width_of_their_length(size: int) -> None:
    log = log_of([[NewRecord(None, bytes(size), (), 5)] * 300])
    batch = decoded(log)
    assert batch.column("offset").to_pylist() == list(range(300))
    assert set(batch.column("value").to_pylist()) == {bytes(size)}


def test_runs_that_break_are_walked_right() -> None:
    rng = random.Random(7)
    values = [bytes(rng.choice((10, 10, 10, 10, 11, 70, 9000))) for _ in range(2000)]
    batch = decoded(log_of([[NewRecord(b"k", value, (), 1) for value in values]]))
    assert batch.column("value").to_pylist() == values


def test_the_schema_is_the_official_source_s() -> None:
    batch = decoded(log_of([[NewRecord(b"k", b"v", (), 1)]]))
    assert batch.schema.equals(arrow_schema(include_headers=True))
    row = batch.to_pylist()[0]
    assert (row["topic"], row["partition"], row["timestampType"], row["headers"]) == ("orders", 3, 0, None)


def test_only_the_wanted_offsets_are_shown() -> None:
    log = log_of([[NewRecord(None, b"%d" % number, (), 1) for number in range(10)] for _ in range(3)])
    wanted = OffsetRange(PARTITION, 5, 23)
    assert decoded(log, wanted).column("offset").to_pylist() == list(range(5, 23))
    assert read_batches(log, wanted).next_offset >= 23
    assert read_batches(log, OffsetRange(PARTITION, 5, 20)).next_offset == 20


def test_a_batch_that_is_cut_off_comes_again() -> None:
    first, second = log_of([[NewRecord(None, b"a", (), 1)]]), build_batch([NewRecord(None, b"b")], base_offset=1)
    fetched = read_batches(first + second[:-1], ALL)
    assert fetched.next_offset == 1
    assert len(fetched.batches) == 1


def test_append_time_is_one_time_for_a_batch() -> None:
    log = bytes(build_batch([NewRecord(None, b"a", (), 7), NewRecord(None, b"b", (), 9)], append_time=True))
    batch = decoded(log)
    assert [round(time.timestamp() * 1000) for time in batch.column("timestamp").to_pylist()] == [9, 9]
    assert batch.column("timestampType").to_pylist() == [1, 1]


def test_aborted_transactions_and_markers_are_hidden() -> None:
    aborted = build_batch([NewRecord(None, b"no")], base_offset=0, producer_id=1, producer_epoch=0, transactional=True)
    other = build_batch([NewRecord(None, b"yes")], base_offset=1, producer_id=2, producer_epoch=0, transactional=True)
    marker_value = EndTransactionMarker(ControlType.ABORT, 0).value()
    marker = build_batch(
        [NewRecord(control_key(ControlType.ABORT), marker_value)],
        base_offset=2,
        producer_id=1,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    later = build_batch([NewRecord(None, b"new")], base_offset=3, producer_id=1, producer_epoch=1, transactional=True)
    log = bytes(aborted + other + marker + later)
    fetched = read_batches(log, ALL, aborted=[(0, 1)])
    assert to_arrow(fetched.batches, ALL).column("value").to_pylist() == [b"yes", b"new"]
    assert fetched.next_offset == 4


@settings(deadline=None)
@given(st.data())
def test_damaged_bytes_never_pass_silently(data: st.DataObject) -> None:
    log = bytearray(log_of([[NewRecord(b"key", b"value" * 10, (), 1)] * 20]))
    place = data.draw(st.integers(min_value=61, max_value=len(log) - 1))
    log[place] ^= data.draw(st.integers(min_value=1, max_value=255))
    with pytest.raises(CorruptBatchError):
        read_batches(bytes(log), ALL)
    with suppress(CorruptBatchError):  # without checksums anything may come out, but nothing else is raised
        to_arrow(read_batches(bytes(log), ALL, check_crcs=False).batches, ALL, include_headers=True)
