"""Clean a log: find the last offset of every key in the dirty part, then rewrite the segments without older records.

    1  read the keys of the dirty segments until their end or until the key table is full
    2  for each group of adjacent segments up to there: copy what is kept to <base offset>.*.cleaned, and sync it

The source files are only read. The output of a cleaner that dies is useless and is removed at the next start. The
broker swaps the cleaned segments in.
"""

from collections.abc import Callable, Iterator
from dataclasses import field
from time import monotonic

from sskafka.model.buffers import Buffer
from sskafka.model.values import structure
from sskafka.records.batch import BatchHeader, CorruptBatchError, crc_matches, read_header
from sskafka.records.record import payload
from sskafka.storage.batch_walk import walk_batches, walk_headers
from sskafka.storage.compaction.batch_cleaning import BatchCleaning, KeyKnowledge
from sskafka.storage.compaction.cleaned_transaction_metadata import CleanedTransactionMetadata
from sskafka.storage.compaction.cleaning_job import (
    Answer,
    CleanedGroup,
    CleaningJob,
    CleaningStats,
    SourceSegment,
    group_segments,
)
from sskafka.storage.compaction.latest_offsets import LatestOffsets
from sskafka.storage.compaction.record_spans import record_spans
from sskafka.storage.disk import Disk, File
from sskafka.storage.log_config import LogConfig
from sskafka.storage.open_files import OpenFiles
from sskafka.storage.segment import Segment, log_path
from sskafka.storage.segment_swap import CLEANED_SUFFIX

_SYNC_EVERY_BYTES = 16 * 1024 * 1024
"""Sync often: writing back a gigabyte at once would delay everybody else's writes."""


class MapTooSmallError(Exception):
    """Not even one batch fits into the key table."""


@structure
class _Counts:
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0
    began_s: float = field(default_factory=monotonic)


def clean_log(disk: Disk, job: CleaningJob, on_io: Callable[[int], None]) -> Iterator[Answer]:
    """Yield cleaned groups as they become ready, then the statistics. `on_io` is called with bytes read and written."""
    counts = _Counts()
    latest, end_offset = learn_keys(disk, job, on_io)
    keys = KeyKnowledge(latest, job.first_dirty_offset, end_offset)
    cleaning = BatchCleaning(
        keys, CleanedTransactionMetadata(job.aborted), job.last_of_producers, job.now_ms, job.delete_retention_ms
    )
    sources = [segment for segment in job.segments if segment.base_offset < end_offset]
    for group in group_segments(sources, job.segment_bytes, job.segment_index_bytes):
        yield _GroupWriter(disk, job, cleaning, counts, on_io).write(group)
    yield CleaningStats(
        end_offset,
        counts.bytes_read,
        counts.bytes_written,
        counts.records_read,
        counts.records_written,
        latest.utilization,
        monotonic() - counts.began_s,
    )


# ---- keys


def learn_keys(disk: Disk, job: CleaningJob, on_io: Callable[[int], None]) -> tuple[LatestOffsets, int]:
    """Return the last offset of every key from the first dirty offset on, and the offset up to which keys were read."""
    dirty = [segment for segment in job.segments if segment.end_offset > job.first_dirty_offset]
    limits = job.limits
    latest = LatestOffsets(limits.map_bytes, limits.map_load_factor, _count_records(disk, job, dirty))
    transactions = CleanedTransactionMetadata(job.aborted)
    end_offset = job.first_dirty_offset
    for segment in dirty:
        for header, batch in _batches(disk, job, segment, on_io):
            if header.last_offset < job.first_dirty_offset:
                continue
            if not _learn_batch(latest, transactions, batch, header, job.first_dirty_offset):
                if end_offset == job.first_dirty_offset:
                    raise MapTooSmallError(f"{limits.map_bytes} bytes hold the keys of less than one batch")
                return latest, end_offset
            end_offset = header.next_offset
        end_offset = segment.end_offset
    return latest, end_offset


def _learn_batch(
    latest: LatestOffsets,
    transactions: CleanedTransactionMetadata,
    batch: Buffer,
    header: BatchHeader,
    first_offset: int,
) -> bool:
    """Add the keys of a batch to the table. Return False if the table was full before the end of the batch."""
    if not crc_matches(batch, header):
        raise CorruptBatchError(f"the batch at offset {header.base_offset} does not match its checksum")
    if header.is_control:
        transactions.is_marker_void(batch, header)
        return True
    if transactions.is_batch_void(header):
        return True
    base_offset, put = header.base_offset, latest.put
    may_get_full = not latest.has_room_for(header.record_count)
    for span in record_spans(payload(batch, header), header.record_count):
        if span.key is not None and base_offset + span.offset_delta >= first_offset:
            if may_get_full and latest.is_full:
                return False
            put(span.key, base_offset + span.offset_delta)
    return True


def _count_records(disk: Disk, job: CleaningJob, segments: list[SourceSegment]) -> int:
    """Return an upper bound of the number of keys from the batch headers. Stop counting at the table's capacity."""
    enough = job.limits.map_bytes
    count = 0
    for segment in segments:
        file = _open(disk, job, segment)
        for _, header in walk_headers(file, segment.start, segment.size_bytes):
            count += header.record_count
        if count > enough:
            break
    return count


def _open(disk: Disk, job: CleaningJob, segment: SourceSegment) -> File:
    return disk.open(log_path(job.directory, segment.base_offset))


def _batches(
    disk: Disk, job: CleaningJob, segment: SourceSegment, on_io: Callable[[int], None]
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield the batches that lie at or above the log start. Raise CorruptBatchError if their offsets, which no checksum
    covers, overlap or reach the next segment."""
    file = _open(disk, job, segment)
    next_offset = 0
    for _, header, batch in walk_batches(file, segment.start, segment.size_bytes, job.limits.io_bytes):
        if header.base_offset < next_offset or header.next_offset > segment.end_offset:
            raise CorruptBatchError(f"the batch at offset {header.base_offset} does not fit into its segment")
        next_offset = header.next_offset
        yield header, batch
        on_io(header.size_bytes)


# ---- segments


class _GroupWriter:
    """Rewrites one group of segments."""

    def __init__(
        self,
        disk: Disk,
        job: CleaningJob,
        cleaning: BatchCleaning,
        counts: _Counts,
        on_io: Callable[[int], None],
    ) -> None:
        self._disk = disk
        self._job = job
        self._cleaning = cleaning
        self._counts = counts
        self._on_io = on_io
        self._pending: list[Buffer] = []
        self._pending_bytes = 0
        self._unsynced_bytes = 0

    def write(self, group: tuple[SourceSegment, ...]) -> CleanedGroup:
        job = self._job
        config = LogConfig(
            segment_bytes=job.segment_bytes,
            segment_index_bytes=job.segment_index_bytes,
            index_interval_bytes=job.index_interval_bytes,
        )
        target = Segment.create(
            self._disk, job.directory, group[0].base_offset, config, OpenFiles(), job.now_ms, CLEANED_SUFFIX
        )
        for header, batch, is_last in self._sources(group):
            self._counts.bytes_read += header.size_bytes
            self._counts.records_read += header.record_count
            left = self._cleaning.clean(batch, header, must_stay=is_last)
            if left is not None:
                self._put(target, left)
        for aborted in self._cleaning.transactions.take_retained():
            target.transaction_index.add(aborted)
        self._flush(target)
        target.seal(sync=True)
        target.file.sync()
        return CleanedGroup(tuple(segment.base_offset for segment in group), target.size_bytes)

    def _sources(self, group: tuple[SourceSegment, ...]) -> Iterator[tuple[BatchHeader, memoryview, bool]]:
        """Yield every batch and whether it is the group's last: the new segment must reach as far as the old ones."""
        last = max((number for number, segment in enumerate(group) if segment.size_bytes), default=0)
        for number, segment in enumerate(group):
            position = segment.start
            for header, batch in _batches(self._disk, self._job, segment, self._on_io):
                position += header.size_bytes
                yield header, batch, number == last and position == segment.size_bytes

    def _put(self, target: Segment, batch: Buffer) -> None:
        header = read_header(batch)
        self._pending.append(bytes(batch))  # the bytes read are valid only until the next step
        self._pending_bytes += len(batch)
        data_records = 0 if header.is_control else header.record_count
        self._counts.records_written += header.record_count
        target.note_batch(header.last_offset, len(batch), header.max_timestamp, data_records)
        if self._pending_bytes >= self._job.limits.io_bytes:
            self._flush(target)

    def _flush(self, target: Segment) -> None:
        """Write pending batches. The segment's size counts them already."""
        data = b"".join(self._pending)
        if data:
            target.file.write_at(data, target.size_bytes - len(data))
        self._pending.clear()
        self._pending_bytes = 0
        self._counts.bytes_written += len(data)
        self._unsynced_bytes += len(data)
        self._on_io(len(data))
        if self._unsynced_bytes >= _SYNC_EVERY_BYTES:
            target.file.sync()
            self._unsynced_bytes = 0
