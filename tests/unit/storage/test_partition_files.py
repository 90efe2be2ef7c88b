"""Segments, batches, index entries and the newest records of a log, read from its files while it is open."""

from collections.abc import Iterator
from pathlib import Path
from struct import pack_into

import pytest
from logs import append, batch, reopen

from sskafka.model.ids import METADATA_TOPIC, TopicPartition
from sskafka.storage.disk import OsDisk
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.partition_files import PartitionFiles, position_before, read_batches, read_index
from sskafka.storage.record_tail import PLACE_EVERY, RecordTail

ORDERS = TopicPartition("orders", 0)
BATCHES = 200


@pytest.fixture
def files(tmp_path: Path) -> PartitionFiles:
    (tmp_path / "data" / "orders-0").mkdir(parents=True)
    return PartitionFiles([str(tmp_path / "other"), str(tmp_path / "data")], str(tmp_path / "data"), 0)


@pytest.fixture
def log(files: PartitionFiles, tmp_path: Path) -> Iterator[Log]:
    config = LogConfig(segment_bytes=8_000, index_interval_bytes=200)
    log = reopen(OsDisk(), config, str(tmp_path / "data" / "orders-0"))
    for number in range(BATCHES):
        append(log, b"first of %d" % number, b"second", producer_id=5, producer_epoch=0, base_sequence=2 * number)
    yield log
    log.close()


def test_segments_batches_and_index_entries(files: PartitionFiles, log: Log) -> None:
    directory = files.directory(ORDERS)
    assert directory is not None
    segments = files.segments(directory)
    assert len(segments) > 1
    assert [segment.base_offset for segment in segments] == sorted(segment.base_offset for segment in segments)
    seen: list[int] = []
    for segment in segments:
        position: int | None = 0
        while position is not None:
            page = read_batches(directory, segment.base_offset, position, 7)
            assert len(page.batches) <= 7
            assert all(found.is_valid and found.producer_id == 5 and found.records == 2 for found in page.batches)
            seen += [found.base_offset for found in page.batches]
            position = page.next_position
    assert seen == list(range(0, 2 * BATCHES, 2))

    closed = segments[0]
    whole = read_index(directory, closed.base_offset, 0, 1000)
    assert (len(whole.offsets), len(whole.times)) == (closed.offset_index_entries, closed.time_index_entries)
    second = read_index(directory, closed.base_offset, 1, 1)
    assert (second.offsets, second.has_more) == (whole.offsets[1:2], True)
    for beyond in (len(whole.offsets), 2**61, 2**63 - 1):  # the last two are positions that no file can have
        assert read_index(directory, closed.base_offset, beyond, 10) == ([], [], False)
    for offset, position in whole.offsets:
        (found,) = read_batches(directory, closed.base_offset, position, 1).batches
        assert found.last_offset == offset
        assert position_before(directory, closed.base_offset, offset) == position


def test_other_names_lead_nowhere(files: PartitionFiles, log: Log, tmp_path: Path) -> None:
    (tmp_path / "secret-0").mkdir()
    for topic in ("../secret", "..", "orders/../orders", "absent", "", "/etc"):
        assert files.directory(TopicPartition(topic, 0)) is None
    assert files.directory(TopicPartition("orders", -1)) is None
    assert files.directory(TopicPartition(METADATA_TOPIC, 0)) is None


def test_partitions_may_be_numbered_from_one(tmp_path: Path) -> None:
    for name in ("orders-1", f"{METADATA_TOPIC}-0"):
        (tmp_path / name).mkdir()
    files = PartitionFiles([str(tmp_path)], str(tmp_path), 1)
    assert files.directory(ORDERS) == tmp_path / "orders-1"
    assert files.directory(TopicPartition(METADATA_TOPIC, 0)) == tmp_path / f"{METADATA_TOPIC}-0"


def test_damaged_batches_are_shown_as_such(tmp_path: Path) -> None:
    data = bytearray(batch(b"good") + batch(b"damaged", base_offset=1) + batch(b"long", base_offset=2))
    one = len(batch(b"good"))
    data[one + len(batch(b"damaged")) - 1] ^= 1
    pack_into(">i", data, one + len(batch(b"damaged")) + 8, 2**31 - 1)
    (tmp_path / "00000000000000000000.log").write_bytes(data)
    page = read_batches(tmp_path, 0, 0, 10)
    assert [found.is_valid for found in page.batches] == [True, False]
    assert page.next_position is None
    assert page.problem is not None
    assert "64 MiB" in page.problem
    assert read_batches(tmp_path, 0, 5, 10).problem is not None, "no batch begins there"
    with pytest.raises(FileNotFoundError):
        read_batches(tmp_path, 1, 0, 10)
    with pytest.raises(FileNotFoundError):
        read_index(tmp_path, 1, 0, 10)


def offsets(tail: RecordTail, before: int = 2**63 - 1) -> list[int]:
    return [found.record.offset for found in tail.newest_before(before)]


def test_the_newest_records_come_first(files: PartitionFiles, log: Log) -> None:
    directory = files.directory(ORDERS)
    assert directory is not None
    tail = RecordTail(files, directory)
    assert offsets(tail) == list(reversed(range(2 * BATCHES)))
    for before in (0, 1, 130, 2 * BATCHES - 1):
        assert offsets(tail, before) == list(reversed(range(before)))
    append(log, b"new", b"second")
    assert offsets(tail)[:2] == [2 * BATCHES + 1, 2 * BATCHES]


def test_other_batches_in_the_place_of_truncated_ones(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    path = tmp_path / "orders-0" / "00000000000000000000.log"
    count = 3 * PLACE_EVERY
    path.write_bytes(b"".join(batch(b"old", base_offset=number) for number in range(count)))
    tail = RecordTail(PartitionFiles([str(tmp_path)], str(tmp_path), 0), tmp_path / "orders-0")
    assert len(offsets(tail)) == count
    path.write_bytes(b"".join(batch(b"another", base_offset=number) for number in range(count)))
    found = list(tail.newest_before(2**63 - 1))
    assert [one.record.offset for one in found] == list(reversed(range(count)))
    assert {one.record.value for one in found} == {b"another"}
