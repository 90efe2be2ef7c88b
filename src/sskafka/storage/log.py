"""The log of one partition: batches in segments, in the order of their offsets.

    log start                     recovery point        ready       log end
        |-- segment --|-- segment --|--- active segment --|------------|
                                    surely on disk        | acknowledged only after the flush under way

The leader's appends give offsets, the follower's keep them. Everything runs on one thread; only syncs and cold reads
happen elsewhere, on files that were handed out (`plan_flush`, `FileSlice`). Opening and recovering a log is
recovery.py's part, lookups by timestamp are timestamp_search.py's.

An append is all or nothing: checked first, written in one go, cut off again if the write fails, and only then made
visible in offsets, indexes, epochs and producer state.
"""

from collections.abc import Callable
from typing import NamedTuple

from sskafka.model.buffers import Buffer
from sskafka.model.ids import ZERO_UUID, TopicPartition, Uuid
from sskafka.records.batch import (
    CONTROL,
    LOG_OVERHEAD_BYTES,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatchError,
    assign_offset,
    crc_matches,
    set_append_time,
)
from sskafka.storage.append_checks import AppendChecks, PlacedHeader, place_headers
from sskafka.storage.disk import File
from sskafka.storage.errors import (
    OffsetOutOfRangeError,
    StorageError,
    UnexpectedAppendOffsetError,
)
from sskafka.storage.file_slice import FileSlice
from sskafka.storage.flusher import Flusher, FlushPlan
from sskafka.storage.leader_epochs import EpochEnd, LeaderEpochs
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_directory import LogDirectory
from sskafka.storage.producer_rebuild import rebuild_producers
from sskafka.storage.producer_snapshots import ProducerSnapshots
from sskafka.storage.producer_state import ProducerState
from sskafka.storage.segment import RELATIVE_OFFSET_MAX, Segment
from sskafka.storage.segments import Segments
from sskafka.storage.timestamp_search import TimestampedOffset, find_max_timestamp, find_timestamp
from sskafka.storage.transaction_index import AbortedTransaction
from sskafka.storage.transaction_marker import read_marker


class AppendInfo(NamedTuple):
    base_offset: int
    last_offset: int
    append_time_ms: int  # -1 unless the topic uses LogAppendTime
    log_start_offset: int
    duplicate: bool = False


class LogParts(NamedTuple):
    """What recovery found and put in order; a log is made of it."""

    segments: list[Segment]
    epochs: LeaderEpochs
    producers: ProducerState
    snapshots: ProducerSnapshots
    log_start_offset: int
    log_end_offset: int
    recovery_point: int


class Log:
    def __init__(
        self,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        parts: LogParts,
        log_directory: LogDirectory,
        flusher: Flusher,
        topic_id: Uuid = ZERO_UUID,
    ) -> None:
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log_directory = log_directory
        self.log_start_offset = parts.log_start_offset
        self.log_end_offset = parts.log_end_offset
        self.recovery_point = parts.recovery_point
        self.ready_offset = parts.log_end_offset
        self.on_ready: Callable[[], None] | None = None
        self.on_files_deleted: Callable[[list[str]], None] | None = None
        self.last_flush_ms = NO_TIMESTAMP
        self.epochs = parts.epochs
        self.producers = parts.producers
        self.segments = Segments(parts.segments)
        self._snapshots = parts.snapshots
        self._unsynced: list[Segment] = []  # sealed, but not yet surely on disk
        self._flusher = flusher
        self._is_flush_due = False
        self._truncations = 0
        self._records_below_start = (self.segments.first.base_offset, 0)  # for which log start, how many
        self.configure(config)

    def __repr__(self) -> str:
        return f"Log({self.topic_partition}, {self.log_start_offset}..{self.log_end_offset})"

    def configure(self, config: LogConfig) -> None:
        """Takes changed settings; they hold from the next append on."""
        self.config = config
        self._checks = AppendChecks(config)
        self._stamps = config.uses_append_time

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    # ---- append

    def append_as_leader(
        self, batches: bytearray | memoryview, leader_epoch: int, now_ms: int, *, from_client: bool = True
    ) -> AppendInfo:
        """Gives the batches offsets and the leader's epoch, in place, and writes them."""
        if self.log_directory.failure is not None:
            raise self.log_directory.failure
        placed = self._checks.checked(batches, now_ms, from_client=from_client)
        duplicate = self._check_producers(batches, placed)
        if duplicate is not None:
            return duplicate
        append_time_ms = NO_TIMESTAMP
        if self._stamps:
            append_time_ms = now_ms
            placed = _stamp(batches, placed, now_ms)
        base_offset = next_offset = self.log_end_offset
        for position, header in placed:
            assign_offset(batches, position, next_offset, leader_epoch)
            next_offset += header.last_offset_delta + 1
        if leader_epoch > self.epochs.latest_epoch:
            self._assign_epoch(leader_epoch, base_offset)
        segment = self._write(batches, placed, base_offset, next_offset, now_ms)
        next_offset = base_offset
        for position, header in placed:
            self._note(segment, batches, position, header, next_offset, now_ms)
            next_offset += header.last_offset_delta + 1
        self._advance(next_offset)
        return AppendInfo(base_offset, next_offset - 1, append_time_ms, self.log_start_offset)

    def append_as_follower(self, batches: Buffer, now_ms: int = NO_TIMESTAMP) -> AppendInfo:
        """Writes batches as the leader has them: offsets, epochs and all."""
        self.log_directory.check_online()
        placed = place_headers(batches)
        base_offset, next_offset = placed[0][1].base_offset, self.log_end_offset
        for position, header in placed:
            if not crc_matches(batches, header, position):
                raise CorruptBatchError(f"the batch at offset {header.base_offset} does not match its checksum")
            if header.base_offset < next_offset or header.last_offset_delta < 0:
                raise UnexpectedAppendOffsetError(base_offset, placed[-1][1].last_offset, self.log_end_offset)
            next_offset = header.next_offset
        for _, header in placed:
            if header.leader_epoch > self.epochs.latest_epoch:
                self._assign_epoch(header.leader_epoch, header.base_offset)
        segment = self._write(batches, placed, base_offset, next_offset, now_ms)
        for position, header in placed:
            self._note(segment, batches, position, header, header.base_offset, now_ms)
        self._advance(next_offset)
        return AppendInfo(base_offset, next_offset - 1, NO_TIMESTAMP, self.log_start_offset)

    def _check_producers(self, batches: Buffer, placed: list[PlacedHeader]) -> AppendInfo | None:
        """Sequences and epochs are right, or the answer to a batch that is in the log already."""
        if len(placed) > 1:
            self.producers.check_all(header for _, header in placed if not header.attributes & CONTROL)
            return None
        position, header = placed[0]
        if header.producer_id < 0:
            return None
        if header.attributes & CONTROL:
            marker = read_marker(batches, header, position)
            if marker is not None:
                self.producers.check_marker(header, marker)
            return None
        known = self.producers.duplicate_of(header)
        if known is not None:
            append_time_ms = known.timestamp if self._stamps else NO_TIMESTAMP
            return AppendInfo(known.first_offset, known.last_offset, append_time_ms, self.log_start_offset, True)
        self.producers.check(header)
        return None

    def _assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Durable before the epoch's first batch is written: recovery relies on it."""
        try:
            self.epochs.assign(epoch, start_offset)
        except OSError as error:
            raise self.log_directory.write_failed(error) from error

    def _write(
        self, batches: Buffer, placed: list[PlacedHeader], base_offset: int, end_offset: int, now_ms: int
    ) -> Segment:
        """The bytes are in the file; until `_note` and `_advance` nobody can see them."""
        segment = self.segments.active
        if self._must_roll(segment, len(batches), placed, end_offset, now_ms):
            segment = self._roll(base_offset, now_ms)
        try:
            if segment.is_index_flush_due:
                segment.flush_indexes()
            segment.write(batches)
        except OSError as error:
            raise self._undo(segment, error) from error
        return segment

    def _note(
        self, segment: Segment, batches: Buffer, position: int, header: BatchHeader, base_offset: int, now_ms: int
    ) -> None:
        """A batch is in the file: indexes and producers learn of it."""
        segment.note_batch(
            base_offset + header.last_offset_delta, header.length + LOG_OVERHEAD_BYTES, header.max_timestamp
        )
        if header.producer_id >= 0:
            self._note_producer(segment, batches, position, header, base_offset, now_ms)
        if not header.attributes & CONTROL and segment.data_records is not None:
            segment.data_records += header.record_count

    def _advance(self, end_offset: int) -> None:
        self.log_end_offset = end_offset
        if end_offset - self.recovery_point >= self.config.flush_messages:
            self._is_flush_due = True
            self._flusher.request(self)
        elif not self._is_flush_due:
            self.ready_offset = end_offset

    def _note_producer(
        self, segment: Segment, batches: Buffer, position: int, header: BatchHeader, base_offset: int, now_ms: int
    ) -> None:
        if not header.attributes & CONTROL:
            self.producers.add(header, base_offset, now_ms)
            return
        marker = read_marker(batches, header, position)
        if marker is not None:
            aborted = self.producers.end_transaction(header, marker, base_offset, now_ms)
            if aborted is not None:
                segment.transaction_index.add(aborted)

    def _undo(self, segment: Segment, error: OSError) -> StorageError:
        """Nothing of a failed write stays in the file; if even that fails, the directory is done for."""
        try:
            segment.undo_write()
        except OSError as cut_error:
            return self.log_directory.fail(cut_error)
        return self.log_directory.write_failed(error)

    # ---- segments

    def _must_roll(
        self, segment: Segment, size_bytes: int, placed: list[PlacedHeader], end_offset: int, now_ms: int
    ) -> bool:
        if end_offset - 1 - segment.base_offset > RELATIVE_OFFSET_MAX:
            return True
        if segment.size_bytes == 0:
            return False
        if segment.size_bytes + size_bytes > self.config.segment_bytes or segment.is_index_full:
            return True
        if segment.first_timestamp >= 0:
            return placed[-1][1].max_timestamp - segment.first_timestamp > self.config.segment_ms
        return segment.is_older_than(self.config.segment_ms, now_ms)

    def maybe_roll(self, now_ms: int) -> bool:
        """Begins a new segment when the active one is older than `segment.ms`, so that it can be retired in time."""
        active = self.segments.active
        if active.size_bytes == 0 or not active.is_older_than(self.config.segment_ms, now_ms):
            return False
        self._roll(self.log_end_offset, now_ms)
        return True

    def _roll(self, base_offset: int, now_ms: int) -> Segment:
        """Safe to repeat after an error: the log does not know the new segment before it is whole."""
        old = self.segments.active
        try:
            old.seal()
            self._snapshots.take(self.producers, base_offset)
            segment = self._create_segment(base_offset, now_ms)
        except OSError as error:
            raise self.log_directory.write_failed(error) from error
        self._unsynced.append(old)
        self.segments.add(segment)
        self._flusher.request_if_threaded(self)
        return segment

    def _create_segment(self, base_offset: int, now_ms: int) -> Segment:
        return Segment.create(self.log_directory.disk, self.directory, base_offset, self.config, now_ms)

    def _delete(self, removed: list[Segment]) -> None:
        """Renames the files aside and tells who removes them; the newest first, so that no hole can be left."""
        paths: list[str] = []
        for segment in reversed(removed):
            paths += segment.mark_deleted()
            self._snapshots.remove(segment.base_offset)
        if removed:
            self.log_directory.disk.sync_directory(self.directory)
        self._unsynced = [segment for segment in self._unsynced if segment not in removed]
        if paths and self.on_files_deleted is not None:
            self.on_files_deleted(paths)

    # ---- read

    def read(self, offset: int, max_bytes: int, up_to_offset: int, min_one: bool = True) -> list[FileSlice]:
        """Batches from the one that contains `offset`, none that reaches `up_to_offset` or beyond.

        At most `max_bytes`, which may cut the last batch; but with `min_one` the first one is always whole."""
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRangeError(offset, self.log_start_offset, self.log_end_offset)
        slices: list[FileSlice] = []
        if offset >= up_to_offset or offset == self.log_end_offset:
            return slices
        segment = self.segments.containing(offset)
        start = segment.position_of(offset)
        while True:
            end, following = self._end_position(segment, up_to_offset)
            length = min(end - start, max_bytes)
            if length < end - start and min_one and not slices:
                length = max(length, segment.batch_size_at(start))
            if length > 0:
                slices.append(FileSlice(segment.file, start, length))
                max_bytes -= length
            if following is None or max_bytes <= 0:
                return slices
            segment, start = following, 0

    def _end_position(self, segment: Segment, up_to_offset: int) -> tuple[int, Segment | None]:
        """Where a reader up to `up_to_offset` must stop in `segment`, and the segment in which it goes on."""
        if segment is not self.segments.active:
            following = self.segments.after(segment)
            assert following is not None
            if following.base_offset < up_to_offset:
                return segment.size_bytes, following
        elif up_to_offset >= self.log_end_offset:
            return segment.size_bytes, None
        return segment.position_of(up_to_offset), None

    def offset_for_timestamp(self, timestamp: int) -> TimestampedOffset | None:
        """The first record whose timestamp is `timestamp` or later."""
        return find_timestamp(self.segments, timestamp, self.log_start_offset)

    def max_timestamp_offset(self) -> TimestampedOffset | None:
        return find_max_timestamp(self.segments, self.log_start_offset)

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Where the first transaction begins whose outcome is not known below the high watermark.

        To be asked whenever the high watermark moves."""
        return self.producers.first_unstable_offset(high_watermark)

    @property
    def last_stable_offset(self) -> int:
        """Before the first open transaction, as if everything were replicated."""
        first_open = self.producers.first_open_offset
        return self.log_end_offset if first_open is None else first_open

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions with records in [start, end)."""
        found: list[AbortedTransaction] = []
        for segment in self.segments.starting_at(start_offset):
            aborted, is_complete = segment.transaction_index.overlapping(start_offset, end_offset)
            found += aborted
            if is_complete:
                break
        return found

    def record_count(self) -> int:
        """Data records from the log's start on."""
        counted_for, below = self._records_below_start
        if counted_for != self.log_start_offset:
            below = self.segments.first.records_below(self.log_start_offset)
            self._records_below_start = (self.log_start_offset, below)
        return sum(segment.record_count() for segment in self.segments) - below

    # ---- cut

    def truncate_to(self, offset: int) -> int:
        """Removes the batches that reach `offset` or beyond; gives the new end, which is `offset` or a batch before."""
        if offset >= self.log_end_offset:
            return self.log_end_offset
        if offset < self.segments.first.base_offset:
            self.truncate_fully_and_start_at(offset)
            return offset
        self._truncations += 1
        try:
            self._delete(self.segments.remove_after(offset))
            end_offset = self.segments.active.truncate_at(offset)
            self.epochs.truncate_from_end(end_offset)
        except OSError as error:
            raise self.log_directory.fail(error) from error
        self._end_at(end_offset)
        rebuild_producers(self.segments, self._snapshots, self.producers, end_offset)
        return end_offset

    def truncate_fully_and_start_at(self, offset: int, now_ms: int = NO_TIMESTAMP) -> None:
        """Throws everything away; the log begins and ends at `offset`."""
        self._truncations += 1
        try:
            self._delete(list(self.segments))
            self.segments.replace_all(self._create_segment(offset, now_ms))
            self.epochs.clear()
            self._snapshots.remove_from(-1)
        except OSError as error:
            raise self.log_directory.fail(error) from error
        self.producers.clear()
        self.log_start_offset = offset
        self._end_at(offset)
        self.recovery_point = offset

    def _end_at(self, end_offset: int) -> None:
        self.log_end_offset = end_offset
        self.log_start_offset = min(self.log_start_offset, end_offset)
        self.recovery_point = min(self.recovery_point, end_offset)
        self.ready_offset = min(self.ready_offset, end_offset)
        self._records_below_start = (self.segments.first.base_offset, 0)

    def increment_log_start_offset(self, offset: int) -> None:
        """Records before `offset` are gone; segments that hold nothing else are deleted."""
        if offset > self.log_end_offset:
            raise OffsetOutOfRangeError(offset, self.log_start_offset, self.log_end_offset)
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        try:
            self.epochs.truncate_from_start(offset)
            self._delete(self.segments.remove_before(offset))
        except OSError as error:
            raise self.log_directory.write_failed(error) from error

    # ---- flush and close

    def flush(self) -> None:
        """Returns when the whole log is on disk."""
        self._flusher.flush_now(self)

    def flush_soon(self) -> None:
        """As `flush`, in a thread where there is one."""
        self._flusher.request_soon(self)

    def plan_flush(self) -> FlushPlan:
        files: list[File] = []
        for segment in self._unsynced:
            files += segment.all_files()
        files.append(self.segments.active.file)
        return FlushPlan(files, self.log_end_offset, self._truncations)

    def complete_flush(self, plan: FlushPlan) -> None:
        if plan.truncations != self._truncations:
            if self._is_flush_due:
                self._flusher.request(self)
            return
        self._unsynced = [segment for segment in self._unsynced if segment.base_offset >= plan.end_offset]
        self.recovery_point = max(self.recovery_point, plan.end_offset)
        before = self.ready_offset
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            self.ready_offset = max(before, self.recovery_point)
            self._flusher.request(self)
        else:
            self._is_flush_due = False
            self.ready_offset = self.log_end_offset
        if self.ready_offset != before and self.on_ready is not None:
            self.on_ready()

    def close(self) -> None:
        """A clean stop: everything is on disk, the indexes too, and the producers are in a snapshot."""
        self._flusher.forget(self)
        self.log_directory.check_online()
        try:
            self.segments.active.seal(sync=True)
            self._snapshots.take(self.producers, self.log_end_offset)
        except OSError as error:
            raise self.log_directory.fail(error) from error
        self.flush()
        self.abandon()

    def abandon(self) -> None:
        """Lets go of the files without a word to the disk: the log is deleted, or its directory offline."""
        self._flusher.forget(self)
        for segment in self.segments:
            segment.close()


def _stamp(batches: bytearray | memoryview, placed: list[PlacedHeader], now_ms: int) -> list[PlacedHeader]:
    for position, header in placed:
        set_append_time(batches, position, header, now_ms)
    return [(position, header._replace(max_timestamp=now_ms)) for position, header in placed]
