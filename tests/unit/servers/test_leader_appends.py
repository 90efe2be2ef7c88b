from sskafka.records.batch import iter_headers
from sskafka.records.builder import NewRecord
from sskafka.records.record import decode_records
from sskafka.servers.http.record_writer import BATCH_BYTES, batches_of


def values(data: bytearray) -> list[bytes | None]:
    return [
        record.value for position, header in iter_headers(data) for record in decode_records(data, header, position)
    ]


def test_few_records_are_one_batch() -> None:
    (batch,) = batches_of([NewRecord(b"k", b"a"), NewRecord(None, None)], 5)
    assert batch.records == 2
    assert values(batch.data) == [b"a", None]
    (header,) = [header for _, header in iter_headers(batch.data)]
    assert header.max_timestamp == 5


def test_many_bytes_are_several_batches_in_order() -> None:
    records = [NewRecord(None, bytes([number]) * (BATCH_BYTES // 3)) for number in range(7)]
    batches = list(batches_of(records, 0))
    assert [batch.records for batch in batches] == [2, 2, 2, 1]
    assert [value for batch in batches for value in values(batch.data)] == [record.value for record in records]
    assert all(len(batch.data) <= BATCH_BYTES for batch in batches)


def test_a_record_above_the_limit_has_a_batch_of_its_own() -> None:
    records = [NewRecord(None, b"a"), NewRecord(None, b"b" * (BATCH_BYTES + 1)), NewRecord(None, b"c")]
    assert [batch.records for batch in batches_of(records, 0)] == [1, 1, 1]
