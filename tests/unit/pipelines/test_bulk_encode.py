from hypothesis import given, settings
from hypothesis import strategies as st

from sskafka.pipelines.connector.encode import Payload, Row, framed, partitions_of_keys, payloads
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
    assert partitions_of_keys(keys, count).tolist() == [partition_for_key(key, count) for key in keys]
