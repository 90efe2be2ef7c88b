import pytest

from sskafka.client.fetched import CompletedFetch
from sskafka.client.record_buffer import RecordBuffer
from sskafka.model.ids import TopicPartition
from sskafka.records.batch import CorruptBatchError
from sskafka.records.builder import NewRecord, build_batch


def fetched(partition: int, *batches: bytes) -> CompletedFetch:
    return CompletedFetch(TopicPartition("t", partition), b"".join(batches), 0)


def batch(base_offset: int, count: int) -> bytes:
    return bytes(build_batch([NewRecord(None, b"x")] * count, base_offset=base_offset))


class Moves:
    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}

    def __call__(self, moved: CompletedFetch) -> None:
        self.offsets[moved.partition.partition] = moved.next_offset


def taken(buffer: RecordBuffer, count: int | None = None) -> list[tuple[int, int]]:
    return [(record.partition, record.offset) for record in buffer.take(count)]


def test_partitions_take_turns() -> None:
    moves = Moves()
    buffer = RecordBuffer(moves)
    buffer.put(fetched(0, batch(0, 10)))
    buffer.put(fetched(1, batch(0, 3)))
    buffer.put(fetched(2, batch(0, 2)))
    assert taken(buffer, 3) == [(0, 0), (1, 0), (2, 0)]
    assert taken(buffer, 4) == [(0, 1), (1, 1), (2, 1), (0, 2)]
    assert taken(buffer, 1) == [(1, 2)]
    assert moves.offsets == {0: 3, 1: 3, 2: 2}
    assert taken(buffer, 100) == [(0, offset) for offset in range(3, 10)]
    assert not buffer


def test_a_small_count_serves_one_partition_at_a_time() -> None:
    buffer = RecordBuffer(Moves())
    buffer.put(fetched(0, batch(0, 3)))
    buffer.put(fetched(1, batch(0, 3)))
    assert [taken(buffer, 1)[0][0] for _ in range(6)] == [0, 1, 0, 1, 0, 1]


def test_without_a_count_all_records_are_returned() -> None:
    buffer = RecordBuffer(Moves())
    buffer.put(fetched(0, batch(0, 2), batch(2, 1)))
    buffer.put(fetched(1, batch(0, 1)))
    assert taken(buffer) == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert not buffer


def test_dropped_records_are_not_returned() -> None:
    buffer = RecordBuffer(Moves())
    buffer.put(fetched(0, batch(0, 2)))
    buffer.put(fetched(1, batch(0, 2)))
    buffer.drop(TopicPartition("t", 0))
    assert TopicPartition("t", 0) not in buffer
    assert taken(buffer) == [(1, 0), (1, 1)]


def test_records_before_a_corrupt_batch_are_returned() -> None:
    moves = Moves()
    buffer = RecordBuffer(moves)
    broken = bytearray(batch(2, 1))
    broken[-1] ^= 1
    buffer.put(fetched(0, batch(0, 2), bytes(broken)))
    assert taken(buffer) == [(0, 0), (0, 1)]
    assert moves.offsets == {0: 2}
    assert not buffer
    buffer.put(CompletedFetch(TopicPartition("t", 0), bytes(broken), 2))
    with pytest.raises(CorruptBatchError):
        buffer.take()
