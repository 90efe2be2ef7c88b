from sskafka.client.config import ProducerConfig
from sskafka.evaluation.batch_load import _build_batch, count_records
from sskafka.evaluation.load import LoadSpec
from sskafka.records.batch import read_header
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.record import decode_records


def batch(base_offset: int, count: int) -> bytes:
    return bytes(build_batch([NewRecord(None, b"x")] * count, base_offset=base_offset))


def test_records_are_counted_without_decoding() -> None:
    whole = batch(0, 3) + batch(3, 5)
    assert count_records(whole, 0) == (8, 8)
    assert count_records(whole[:-1], 0) == (3, 3), "a batch that is cut off comes again"
    assert count_records(b"", 17) == (0, 17)


def test_a_batch_is_as_full_as_its_size_allows() -> None:
    spec = LoadSpec("produce", "", "t", record_size=100)
    for size in (1, 1000, 16_384):
        made, count = _build_batch(spec, ProducerConfig(batch_size=size), 1234)
        header = read_header(made)
        assert (header.record_count, header.max_timestamp) == (count, 1234)
        assert [record.value for record in decode_records(made, header)] == [b"." * 100] * count
        assert count == 1 or len(made) <= size
    assert count > 140
