import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sskafka.client.errors import UnknownTopicError
from sskafka.pipelines.connector.encode import Columns, Payload, Row, framed, payloads, payloads_of
from sskafka.pipelines.connector.partitioning import partition_numbers, partitions_of_keys
from sskafka.records.batch import TRANSACTIONAL, crc_matches, read_header
from sskafka.records.compression import Compression
from sskafka.records.partitioner import partition_for_key
from sskafka.records.record import decode_records

contents = st.one_of(st.none(), st.binary(max_size=300))
headers = st.lists(st.tuples(st.text(max_size=3), st.one_of(st.none(), st.binary(max_size=3))), max_size=2).map(tuple)
rows = st.lists(st.builds(Row, contents, contents, headers), min_size=1, max_size=200)


def batch_of(payload: Payload, codec: Compression = Compression.NONE) -> bytes:
    return bytes(
        framed(
            payload,
            timestamp=1234,
            producer_id=9,
            producer_epoch=2,
            base_sequence=5,
            codec=codec,
            transactional=True,
        )
    )


@settings(deadline=None)
@given(rows, st.sampled_from(Compression))
def test_batches_decode_to_the_rows(given_rows: list[Row], codec: Compression) -> None:
    found = []
    for payload in payloads(given_rows, bytes_max=2_000):
        batch = batch_of(payload, codec)
        header = read_header(batch)
        assert crc_matches(batch, header)
        assert header.attributes & TRANSACTIONAL
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, 5)
        records = list(decode_records(batch, header))
        assert [record.offset for record in records] == list(range(len(records)))
        assert {record.timestamp for record in records} == {1234}
        found += [Row(record.key, record.value, record.headers) for record in records]
    assert found == given_rows


def test_batches_stay_below_their_limit_and_large_rows_stand_alone() -> None:
    given_rows = [Row(None, bytes(size)) for size in (10, 500, 5_000, 10, 400, 700)]
    sizes = [(payload.record_count, len(payload.records)) for payload in payloads(given_rows, bytes_max=1_000)]
    assert sum(count for count, _ in sizes) == len(given_rows)
    assert [size for count, size in sizes if count > 1 and size > 1_000] == []


def test_no_rows_make_no_batch() -> None:
    assert list(payloads([])) == []


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40), min_size=1, max_size=100), st.integers(min_value=1, max_value=50))
def test_keys_land_where_kafka_puts_them(keys: list[bytes], count: int) -> None:
    found = partitions_of_keys(pa.array(keys, pa.binary()), count)
    assert found.tolist() == [partition_for_key(key, count) for key in keys]


def test_rows_name_their_partition_or_have_a_key_or_neither() -> None:
    keys = pa.array([None, b"a", None, b"a"], pa.binary())
    rows = pa.record_batch({"key": keys, "partition": pa.array([None, None, 5, 6], pa.int32())})
    of_key = partition_for_key(b"a", 7)
    assert partition_numbers(rows, "t", 7, keyless=9).tolist() == [2, of_key, 5, 6]
    assert partition_numbers(rows.select(["key"]), "t", 7, keyless=9).tolist() == [2, of_key, 2, of_key]
    assert partition_numbers(pa.record_batch({"value": keys}), "t", 7, keyless=0).tolist() == [0, 0, 0, 0]
    for wrong in (7, -1):
        with pytest.raises(UnknownTopicError, match=f"a row names partition {wrong}, but 't' has 7"):
            partition_numbers(pa.record_batch({"partition": pa.array([0, wrong])}), "t", 7, keyless=0)


def test_columns_may_be_cut_out_of_larger_ones() -> None:
    """Arrow's slices share buffers with what they were cut from."""
    some = [Row(b"k%d" % number, None if number % 3 else bytes(number)) for number in range(50)]
    cut = Columns.of_rows(some).slice(10, 40)
    (payload,) = payloads_of(Columns.joined([cut.slice(0, 7), cut.slice(7, 30)]))
    header = read_header(batch := batch_of(payload))
    assert [Row(one.key, one.value) for one in decode_records(batch, header)] == some[10:40]
    assert partitions_of_keys(cut.keys, 9).tolist() == [partition_for_key(row.key or b"", 9) for row in some[10:40]]
