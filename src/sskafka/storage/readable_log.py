"""The part of a log that readers use: segments, offsets and indexes, and what cannot be read.

    log start                                 high watermark         log end
        |-- segment --|-- segment --|--- active segment ---|------------|

Reads return slices of files (`FileSlice`), so nothing here blocks on the disk except lookups in indexes. durable_log.py
adds flushes, log.py appends, truncations and deletions.
"""

from typing import NamedTuple

from sskafka.model.ids import EpochEnd, TopicPartition, Uuid
from sskafka.partition.log_offsets import LogOffsets
from sskafka.records.batch import NO_TIMESTAMP
from sskafka.storage.damage import Damage, DamagedRanges
from sskafka.storage.errors import OffsetOutOfRangeError
from sskafka.storage.file_slice import ClosedSlice, FileSlice
from sskafka.storage.leader_epochs import LeaderEpochs
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.open_files import OpenFiles
from sskafka.storage.producers.snapshots import ProducerSnapshots
from sskafka.storage.producers.state import ProducerState
from sskafka.storage.record_count import RecordCount, Uncounted
from sskafka.storage.segment import Segment
from sskafka.storage.segments import Segments
from sskafka.storage.timestamp_search import (
    PartToSearch,
    TimestampedOffset,
    largest_timestamp,
    part_with_timestamp,
)
from sskafka.storage.transactions.index import AbortedTxn


class LogParts(NamedTuple):
    """The parts of a log as recovery leaves them."""

    segments: list[Segment]
    epochs: LeaderEpochs
    producers: ProducerState
    snapshots: ProducerSnapshots
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    first_dirty_offset: int
    open_files: OpenFiles
    has_new_segment: bool


class ReadableLog:
    __slots__ = (
        "_record_count",
        "config",
        "damaged",
        "directory",
        "epochs",
        "log_directory",
        "offsets",
        "segments",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        parts: LogParts,
        log_directory: LogDirHealth,
    ) -> None:
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.config = config
        self.log_directory = log_directory
        self.offsets = LogOffsets(parts.log_start_offset, parts.log_end_offset)
        self.epochs = parts.epochs
        self.segments = Segments(parts.segments)
        self.damaged: DamagedRanges | None = None
        """Ranges that cannot be read, None if none is known."""
        self._record_count = RecordCount(self.segments)

    def __repr__(self) -> str:
        return f"Log({self.topic_partition}, {self.log_start_offset}..{self.log_end_offset})"

    @property
    def log_start_offset(self) -> int:
        return self.offsets.log_start

    @property
    def log_end_offset(self) -> int:
        return self.offsets.log_end

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    def read(self, offset: int, max_bytes: int, up_to_offset: int, min_one: bool = True) -> list[FileSlice]:
        """Return batches from the one that contains `offset`, and none that reaches `up_to_offset`.

        At most `max_bytes` are returned, which may cut the last batch. With `min_one` the first batch is always
        complete."""
        log_end = self.offsets.log_end
        if not self.offsets.log_start <= offset <= log_end:
            raise OffsetOutOfRangeError(offset, self.log_start_offset, log_end)
        if offset >= up_to_offset or offset == log_end:
            return []
        if self.damaged is not None:
            up_to_offset = self.damaged.readable_up_to(offset, up_to_offset)
        try:
            return read_slices(self.segments, offset, max_bytes, min(up_to_offset, log_end), min_one)
        except OSError as error:
            raise self.log_directory.read_failed(error) from error

    def note_damage(self, damage: Damage) -> bool:
        """Stop serving a damaged range. Return whether it was not known yet."""
        self.damaged = self.damaged or DamagedRanges()
        return self.damaged.add(damage)

    def is_damaged_at(self, damage: Damage) -> bool:
        """Return whether the damage is still there: not truncated, deleted or replaced since."""
        return self.damaged is not None and damage in self.damaged

    def forget_damage(self, damage: Damage) -> None:
        """Serve a range again that has been replaced."""
        if self.damaged is not None:
            self.damaged.remove(damage)
            self._drop_gone_damage()

    def _drop_gone_damage(self) -> None:
        if self.damaged is not None:
            self.damaged.keep_between(self.log_start_offset, self.log_end_offset)
            self.damaged = self.damaged or None

    def offset_for_timestamp(self, timestamp: int) -> TimestampedOffset | None:
        """Return the first record whose timestamp is `timestamp` or later. The event loop uses the parts of this, and
        has a thread do what takes long."""
        with self.log_directory.reading():
            from_offset = self.log_start_offset
            while (part := self.part_with_timestamp(timestamp, from_offset)) is not None:
                batch, from_offset = part.walk_slice()
                found = None if batch is None else batch.search()
                if found is not None:
                    return found
            return None

    def part_with_timestamp(self, timestamp: int, from_offset: int) -> PartToSearch | None:
        """Return the first part of the log that may have a record at `from_offset` or later whose timestamp is
        `timestamp` or later."""
        with self.log_directory.reading():
            return part_with_timestamp(self.segments, timestamp, from_offset, self.config.max_message_bytes)

    def max_timestamp_offset(self) -> TimestampedOffset | None:
        """Return the first record that has the largest timestamp."""
        largest = self.largest_timestamp()
        return None if largest == NO_TIMESTAMP else self.offset_for_timestamp(largest)

    def largest_timestamp(self) -> int:
        return largest_timestamp(self.segments)

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTxn]:
        """Return the aborted transactions with records in [start, end)."""
        found: list[AbortedTxn] = []
        with self.log_directory.reading():
            for segment in self.segments.starting_at(start_offset):
                aborted, is_complete = segment.transaction_index.overlapping(start_offset, end_offset)
                found += aborted
                if is_complete:
                    break
        return found

    def record_count(self) -> int:
        """Return the number of data records from the log start offset on. The event loop uses the two parts of this,
        and has a thread read the headers of batches that are not counted yet."""
        while (count := self.known_record_count()) is None:
            uncounted = self.uncounted_batches()
            assert uncounted is not None
            with self.log_directory.reading():
                uncounted.read_slice()
        return count

    def known_record_count(self) -> int | None:
        """Return the number of data records, or None if there are `uncounted_batches`."""
        return self._record_count.since(self.log_start_offset)

    def uncounted_batches(self) -> Uncounted | None:
        with self.log_directory.reading():
            return self._record_count.uncounted(self.log_start_offset)


def read_slices(segments: Segments, offset: int, max_bytes: int, up_to_offset: int, min_one: bool) -> list[FileSlice]:
    """Return batches from the one with `offset` on, none that reaches `up_to_offset`, which lies within the log."""
    slices: list[FileSlice] = []
    segment = segments.containing(offset)
    start = segment.position_of(offset)
    while True:
        end, following = _end_position(segments, segment, up_to_offset)
        length = min(end - start, max_bytes)
        if length < end - start and min_one and not slices:
            length = max(length, segment.batch_size_at(start))
        if length > 0:
            slices.append(_slice(segments, segment, start, length))
            max_bytes -= length
        if following is None or max_bytes <= 0:
            return slices
        segment, start = following, 0


def _slice(segments: Segments, segment: Segment, start: int, length: int) -> FileSlice:
    if segment is segments.active:
        return FileSlice(segment.file, start, length)
    following = segments.after(segment)
    assert following is not None
    return ClosedSlice(segment.file, start, length, following.base_offset)


def _end_position(segments: Segments, segment: Segment, up_to_offset: int) -> tuple[int, Segment | None]:
    """Return where a read up to `up_to_offset` must stop in `segment`, and the segment in which the read continues."""
    if segment is segments.active:
        return segment.position_of(up_to_offset), None
    following = segments.after(segment)
    assert following is not None
    if following.base_offset < up_to_offset:
        return segment.size_bytes, following
    return segment.position_of(up_to_offset), None
