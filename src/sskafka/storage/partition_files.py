"""The files of partitions on this machine, read while their broker runs: segments, batches and index entries, in pages.

A broker appends to the last segment meanwhile, and may delete others; a file that is gone raises FileNotFoundError.
Index entries of the last segment are on disk only after the broker has flushed them.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from sskafka.model.ids import METADATA_TOPIC, TopicPartition, topic_name_problem
from sskafka.records.batch import NO_PRODUCER_ID, CorruptBatchError
from sskafka.records.compression import Compression
from sskafka.records.legacy import LegacyMessage
from sskafka.storage.offset_index import SUFFIX as OFFSET_INDEX_SUFFIX
from sskafka.storage.offset_index import OffsetIndex
from sskafka.storage.partition_directory import directory_name, parse_directory_name
from sskafka.storage.segment import LOG_SUFFIX, log_path
from sskafka.storage.time_index import SUFFIX as TIME_INDEX_SUFFIX
from sskafka.storage.time_index import TimeIndex
from sskafka.storage.transactions.index import SUFFIX as TRANSACTION_INDEX_SUFFIX
from sskafka.storage.verification.walk import SegmentReader, StoredBatch

PAGE_BYTES_MAX = 16 * 1024 * 1024
"""A page of batches ends here, after at least one batch."""
BATCH_BYTES_MAX = 64 * 1024 * 1024
"""Larger batches are not read. A damaged length may be anything."""


class SegmentFile(NamedTuple):
    base_offset: int
    size_bytes: int
    modified_ms: int
    offset_index_entries: int
    time_index_entries: int
    transaction_index_bytes: int


class BatchSummary(NamedTuple):
    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    records: int
    max_timestamp_ms: int
    compression: str
    magic: int
    is_valid: bool
    """Whether the checksum is right."""
    leader_epoch: int | None = None
    producer_id: int | None = None
    """None: the producer is not idempotent."""
    producer_epoch: int | None = None
    base_sequence: int | None = None
    is_transactional: bool = False
    is_control: bool = False


class BatchPage(NamedTuple):
    batches: list[BatchSummary]
    next_position: int | None
    """Where the next page begins; None at the end of the segment, and where it cannot be read."""
    problem: str | None


class IndexPage(NamedTuple):
    offsets: list[tuple[int, int]]
    """Offset and position."""
    times: list[tuple[int, int]]
    """Timestamp and offset."""
    has_more: bool


class PartitionFiles:
    def __init__(self, data_directories: Sequence[str], metadata_directory: str, partition_base: int) -> None:
        self._data_directories = data_directories
        self._metadata_directory = metadata_directory
        self._partition_base = partition_base

    def directory(self, partition: TopicPartition) -> Path | None:
        """Return the directory of the partition, or None if this machine has none. Other names cannot be given."""
        if topic_name_problem(partition.topic) is not None or partition.partition < 0:
            return None
        is_metadata = partition.topic == METADATA_TOPIC
        parents = [self._metadata_directory] if is_metadata else self._data_directories
        name = directory_name(partition, self._partition_base)
        return next((path for path in (Path(parent, name) for parent in parents) if path.is_dir()), None)

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions of the data directories, without that of the metadata log, by name and number."""
        names = [name for parent in self._data_directories for name in os.listdir(parent)]
        found = {parse_directory_name(name, self._partition_base) for name in names}
        return sorted(one for one in found if one is not None and one.topic != METADATA_TOPIC)

    def segments(self, directory: Path) -> list[SegmentFile]:
        """Return the segments, oldest first."""
        stems = [name.removesuffix(LOG_SUFFIX) for name in os.listdir(directory) if name.endswith(LOG_SUFFIX)]
        found = (_segment(directory, stem) for stem in sorted(stems) if stem.isdigit())
        return [segment for segment in found if segment is not None]


def read_batches(directory: Path, base_offset: int, position: int, limit: int) -> BatchPage:
    """Return at most `limit` batches from `position` on, where a batch has to begin."""
    batches: list[BatchSummary] = []
    with SegmentReader(Path(log_path(str(directory), base_offset))) as reader:
        at = position
        while at < reader.size_bytes and len(batches) < limit and at - position < PAGE_BYTES_MAX:
            if reader.claimed_bytes(at) > BATCH_BYTES_MAX:
                return BatchPage(batches, None, f"at {at}: a batch of more than {BATCH_BYTES_MAX >> 20} MiB")
            try:
                batches.append(_summary(reader.batch_at(at)))
            except CorruptBatchError as error:
                return BatchPage(batches, None, f"at {at}: {error}")
            at += batches[-1].size_bytes
        return BatchPage(batches, at if at < reader.size_bytes else None, None)


def _summary(stored: StoredBatch) -> BatchSummary:
    header = stored.header
    summary = BatchSummary(
        stored.position,
        stored.size_bytes,
        header.offset if isinstance(header, LegacyMessage) else header.base_offset,
        stored.last_offset,
        1 if isinstance(header, LegacyMessage) else header.record_count,
        stored.max_timestamp,
        _codec_name(header.compression),
        header.magic,
        stored.is_valid,
    )
    if isinstance(header, LegacyMessage):
        return summary
    has_producer = header.producer_id != NO_PRODUCER_ID
    return summary._replace(
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id if has_producer else None,
        producer_epoch=header.producer_epoch if has_producer else None,
        base_sequence=header.base_sequence if has_producer else None,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
    )


def _codec_name(number: int) -> str:
    try:
        return Compression(number).name.lower()
    except ValueError:
        return str(number)


def position_before(directory: Path, base_offset: int, offset: int) -> int:
    """Return where a batch begins from which a walk reaches `offset`, by the index as far as it is on disk."""
    path = Path(log_path(str(directory), base_offset)).with_suffix(OFFSET_INDEX_SUFFIX)
    found = 0
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return found
    for relative, position in OffsetIndex.layout.iter_unpack(data[: len(data) - len(data) % OffsetIndex.layout.size]):
        if base_offset + relative > offset or position < found:
            break
        found = position
    return found


def read_index(directory: Path, base_offset: int, first: int, limit: int) -> IndexPage:
    """Return at most `limit` entries of both indexes from number `first` on."""
    log = Path(log_path(str(directory), base_offset))
    log.stat()
    offsets = _entries(log.with_suffix(OFFSET_INDEX_SUFFIX), OffsetIndex.layout, first, limit + 1)
    times = _entries(log.with_suffix(TIME_INDEX_SUFFIX), TimeIndex.layout, first, limit + 1)
    return IndexPage(
        [(base_offset + relative, position) for relative, position in offsets[:limit]],
        [(timestamp, base_offset + relative) for timestamp, relative in times[:limit]],
        max(len(offsets), len(times)) > limit,
    )


def _entries(path: Path, layout: Struct, first: int, limit: int) -> list[tuple[int, int]]:
    try:
        with path.open("rb") as file:
            # A client may ask for any number, and the file system refuses positions that no file can have.
            file.seek(min(first * layout.size, os.fstat(file.fileno()).st_size))
            data = file.read(limit * layout.size)
    except FileNotFoundError:
        return []
    return [(key, value) for key, value in layout.iter_unpack(data[: len(data) - len(data) % layout.size])]


def _segment(directory: Path, stem: str) -> SegmentFile | None:
    """Return None if the broker has just deleted it."""
    path = directory / f"{stem}{LOG_SUFFIX}"
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return SegmentFile(
        int(stem),
        status.st_size,
        status.st_mtime_ns // 1_000_000,
        _size(path.with_suffix(OFFSET_INDEX_SUFFIX)) // OffsetIndex.layout.size,
        _size(path.with_suffix(TIME_INDEX_SUFFIX)) // TimeIndex.layout.size,
        _size(path.with_suffix(TRANSACTION_INDEX_SUFFIX)),
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
