import pytest

from sskafka.records.batch import whole_batches
from sskafka.records.builder import NewRecord, build_batch

BATCHES = [bytes(build_batch([NewRecord(None, b"v" * size, (), 0)])) for size in (1, 50)]


@pytest.mark.parametrize("cut", range(len(BATCHES[1])))
def test_a_cut_batch_at_the_end_is_left_out(cut: int) -> None:
    data = memoryview(BATCHES[0] + BATCHES[1][:cut])
    assert bytes(whole_batches(data)) == BATCHES[0]


def test_whole_batches_stay() -> None:
    data = memoryview(b"".join(BATCHES))
    assert bytes(whole_batches(data)) == data


def test_a_length_that_cannot_be_ends_it() -> None:
    broken = bytearray(BATCHES[0])
    broken[8:12] = (-20).to_bytes(4, "big", signed=True)
    assert bytes(whole_batches(memoryview(BATCHES[0] + broken))) == BATCHES[0]
