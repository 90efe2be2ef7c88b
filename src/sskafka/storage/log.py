"""The log of one partition: batches in segments, in the order of their offsets.

    log start                     recovery point        ready       log end
        |-- segment --|-- segment --|--- active segment --|------------|
                                    known to be on disk   | acknowledged only after a pending sync: a flush that
                                                          | is due, or the files that sync_gate.py waits for

The leader's appends assign offsets, the follower's keep them. Everything runs on one thread; only syncs and cold reads
run elsewhere, on files that were handed out (`plan_flush`, `FileSlice`). recovery/ opens and recovers logs,
append_checks.py checks batches, log_tail.py writes them.

An append is all or nothing: the batches are checked, written at once, truncated again if the write fails, and only then
made visible in offsets, indexes, epochs and producer state.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple
from zlib import crc32

from sskafka.model.buffers import Buffer
from sskafka.model.ids import ZERO_UUID, EpochEnd, TopicPartition, Uuid
from sskafka.partition.log_offsets import LogOffsets
from sskafka.records.batch import (
    CONTROL,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatchError,
    assign_offset,
    crc_matches,
)
from sskafka.storage.append_checks import AppendChecks, Inspected, headers_of
from sskafka.storage.batch_rewriting import BatchRewriting, assign_offsets
from sskafka.storage.damage import Damage, DamagedRanges
from sskafka.storage.errors import (
    OffsetOutOfRangeError,
    UnexpectedAppendOffsetError,
)
from sskafka.storage.file_slice import FileSlice
from sskafka.storage.flusher import Flusher, FlushPlan, Syncable, sync_files
from sskafka.storage.leader_epochs import LeaderEpochs
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.log_tail import LogTail
from sskafka.storage.open_files import OpenFiles
from sskafka.storage.producers.rebuild import rebuild_producers
from sskafka.storage.producers.snapshots import ProducerSnapshots
from sskafka.storage.producers.state import ProducerState
from sskafka.storage.record_count import RecordCount
from sskafka.storage.retention import retained_from
from sskafka.storage.segment import Segment
from sskafka.storage.segments import Segments
from sskafka.storage.slicing import read_slices
from sskafka.storage.sync_gate import SyncGate
from sskafka.storage.timestamp_search import (
    BatchToSearch,
    TimestampedOffset,
    batch_with_timestamp,
    largest_timestamp,
)
from sskafka.storage.transactions.index import AbortedTxn
from sskafka.storage.transactions.marker import read_marker

_new_tuple = tuple.__new__  # a third of the cost of calling a NamedTuple


class AppendInfo(NamedTuple):
    base_offset: int
    last_offset: int
    append_time_ms: int  # -1 unless the topic uses LogAppendTime or the batch is a duplicate
    log_start_offset: int
    duplicate: bool = False


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


class Log:
    __slots__ = (
        "_checks",
        "_flush_messages",
        "_flusher",
        "_gate",
        "_is_closed",
        "_is_held",
        "_record_count",
        "_rewriting",
        "_snapshots",
        "_tail",
        "_truncations",
        "config",
        "damaged",
        "directory",
        "epochs",
        "first_dirty_offset",
        "has_gaps",
        "last_flush_ms",
        "log_directory",
        "offsets",
        "on_files_deleted",
        "on_ready",
        "producers",
        "ready_offset",
        "recovery_point",
        "segments",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        parts: LogParts,
        log_directory: LogDirHealth,
        flusher: Flusher,
        topic_id: Uuid = ZERO_UUID,
    ) -> None:
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log_directory = log_directory
        self.offsets = LogOffsets(parts.log_start_offset, parts.log_end_offset)
        self.recovery_point = parts.recovery_point
        self.first_dirty_offset = parts.first_dirty_offset
        """The log is compacted below this offset. The log cleaner sets it."""
        self.has_gaps = False
        """Whether the log was compacted, here or by the leader. Recovery must not take its gaps for lost records."""
        self.damaged: DamagedRanges | None = None
        """Ranges that cannot be read, None if none is known."""
        self.ready_offset = parts.log_end_offset
        self.on_ready: Callable[[], None] | None = None
        self.on_files_deleted: Callable[[list[str]], None] | None = None
        self.last_flush_ms = NO_TIMESTAMP
        self.epochs = parts.epochs
        self.producers = parts.producers
        self.segments = Segments(parts.segments)
        self._snapshots = parts.snapshots
        self._tail = LogTail(
            directory,
            log_directory,
            self.segments,
            self.producers,
            parts.snapshots,
            parts.open_files,
            on_roll=lambda: flusher.request_if_threaded(self),
            has_new_segment=parts.has_new_segment,
        )
        self._flusher = flusher
        self._gate = SyncGate(flusher, self._maybe_advance_ready)
        self._is_held = False  # appended batches are not ready before a sync
        self._is_closed = False
        self._truncations = 0
        self._record_count = RecordCount(self.segments)
        self.configure(config)

    def __repr__(self) -> str:
        return f"Log({self.topic_partition}, {self.log_start_offset}..{self.log_end_offset})"

    def configure(self, config: LogConfig) -> None:
        """Apply changed settings from the next append on."""
        self.config = config
        self._checks = AppendChecks(config, self.topic_partition)
        self._rewriting = BatchRewriting(config, self._checks)
        self._flush_messages = config.flush_messages
        # Each partition has its own share of the jitter, so that partitions do not all roll at once.
        segment_ms = config.roll_ms
        jitter_ms = min(config.segment_jitter_ms, segment_ms) or 1
        self._tail.configure(config, segment_ms - crc32(str(self.topic_partition).encode()) % jitter_ms)

    @property
    def log_start_offset(self) -> int:
        return self.offsets.log_start

    @property
    def log_end_offset(self) -> int:
        return self.offsets.log_end

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    @property
    def is_in_service(self) -> bool:
        """Return whether the log is open, not deleted, and its directory online."""
        return not self._is_closed and self.log_directory.failure is None

    # ---- append

    def append_as_leader(
        self,
        batches: bytearray | memoryview,
        leader_epoch: int,
        now_ms: int,
        *,
        from_client: bool = True,
        inspected: Inspected | None = None,
    ) -> AppendInfo:
        """Assign offsets and the leader epoch to the batches, in place, and write them.

        ExpensiveBatchError asks the caller to have a thread call `append_checks.inspect`, and to pass its result as
        `inspected`."""
        if self.log_directory.failure is not None:
            raise self.log_directory.failure
        headers = self._checks.checked(batches, now_ms, from_client, inspected)
        if headers[0].producer_id >= 0 or len(headers) > 1:
            duplicate = self._check_producers(batches, headers, from_client)
            if duplicate is not None:
                return duplicate
        append_time_ms = NO_TIMESTAMP
        if self._rewriting.is_needed and from_client:
            recompressed = None if inspected is None else inspected.recompressed
            batches, headers, append_time_ms = self._rewriting.rewritten(batches, headers, now_ms, recompressed)
        base_offset = self.offsets.log_end
        if len(headers) == 1:
            assign_offset(batches, 0, base_offset, leader_epoch)
            end_offset = base_offset + headers[0].last_offset_delta + 1
        else:
            end_offset = assign_offsets(batches, headers, base_offset, leader_epoch)
        if leader_epoch > self.epochs.latest_epoch:
            self._assign_epoch(leader_epoch, base_offset)
        self._tail.write(batches, headers, base_offset, end_offset, now_ms)
        self._advance(end_offset)
        return _new_tuple(AppendInfo, (base_offset, end_offset - 1, append_time_ms, self.offsets.log_start, False))

    @property
    def append_checks(self) -> AppendChecks:
        return self._checks

    def append_as_follower(self, batches: Buffer, now_ms: int = NO_TIMESTAMP) -> AppendInfo:
        """Write batches as received from the leader, with their offsets and epochs."""
        self.log_directory.check_online()
        headers, position = headers_of(batches), 0
        base_offset, next_offset = headers[0].base_offset, self.log_end_offset
        for header in headers:
            if not crc_matches(batches, header, position):
                raise CorruptBatchError(f"the batch at offset {header.base_offset} does not match its checksum")
            if header.base_offset != next_offset or header.last_offset_delta < 0:
                self._check_gap(headers, header, next_offset)
            next_offset = header.next_offset
            position += header.size_bytes
        for header in headers:
            if header.leader_epoch > self.epochs.latest_epoch:
                self._assign_epoch(header.leader_epoch, header.base_offset)
        for part, of_part in self._tail.parts(batches, headers):
            end_offset = of_part[-1].next_offset
            self._tail.write(part, of_part, None, end_offset, now_ms)
            self._advance(end_offset)
        return AppendInfo(base_offset, next_offset - 1, NO_TIMESTAMP, self.log_start_offset)

    def _check_gap(self, headers: list[BatchHeader], header: BatchHeader, expected_offset: int) -> None:
        """Accept an offset gap if the leader's log was compacted. Otherwise the batches do not continue this log."""
        if header.base_offset < expected_offset or header.last_offset_delta < 0:
            raise UnexpectedAppendOffsetError(headers[0].base_offset, headers[-1].last_offset, self.log_end_offset)
        self.has_gaps = True

    def _check_producers(self, batches: Buffer, headers: list[BatchHeader], from_client: bool) -> AppendInfo | None:
        """Check producer epochs and sequences. Return the result for a batch that is in the log already, otherwise
        None."""
        if len(headers) > 1:
            self.producers.check_all(header for header in headers if not header.attributes & CONTROL)
            return None
        header = headers[0]
        if header.attributes & CONTROL:
            marker = read_marker(batches, header)
            if marker is not None:
                self.producers.check_marker(header, marker)
            return None
        if not from_client:
            self.producers.check_epoch(header)
            return None
        known = self.producers.check(header)
        if known is None:
            return None
        # Like Kafka, answer a duplicate batch with its stored timestamp, whichever side set it.
        return AppendInfo(known.first_offset, known.last_offset, known.timestamp, self.log_start_offset, True)

    def _assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Record the epoch durably before any of its batches becomes ready: recovery relies on that."""
        if self._gate.is_threaded:
            self.epochs.assign(epoch, start_offset, save=False)
            self.wait_for_sync(self.epochs.unsaved())
            return
        try:
            self.epochs.assign(epoch, start_offset)
        except OSError as error:
            raise self.log_directory.write_failed(error) from error

    def _advance(self, end_offset: int) -> None:
        """Make the appended batches visible, and ready unless a flush is due."""
        self.offsets.append(end_offset)
        if end_offset - self.recovery_point >= self._flush_messages:
            self._is_held = True
            self._flusher.request(self)
        elif not self._is_held:
            self.ready_offset = end_offset

    def maybe_roll(self, now_ms: int) -> bool:
        """Roll a new segment if the active one is older than `segment.ms`, so that retention can delete it in time."""
        if not self._tail.is_roll_due(now_ms):
            return False
        self._tail.roll(self.log_end_offset, now_ms)
        return True

    # ---- what is replicated

    def advance_high_watermark(self, candidate: int) -> bool:
        """Return whether the high watermark moved; it never moves back here."""
        if not self.offsets.advance_high_watermark(candidate):
            return False
        self.offsets.set_first_unstable(self.producers.first_unstable_offset(candidate))
        return True

    def _find_last_stable(self) -> None:
        """Find the last stable offset after a truncation or a new log start, which may have removed parts of
        transactions."""
        self.offsets.set_first_unstable(self.producers.first_unstable_offset(self.offsets.high_watermark))

    # ---- read

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
        """Keep readers away from a damaged range. Return whether it was not known yet."""
        self.damaged = self.damaged or DamagedRanges()
        return self.damaged.add(damage)

    def is_damaged_at(self, damage: Damage) -> bool:
        """Return whether the damage is still there: not truncated, deleted or replaced since."""
        return self.damaged is not None and damage in self.damaged

    def forget_damage(self, damage: Damage) -> None:
        """Let readers have a range that has been replaced."""
        if self.damaged is not None:
            self.damaged.remove(damage)
            self._drop_gone_damage()

    def _drop_gone_damage(self) -> None:
        if self.damaged is not None:
            self.damaged.keep_between(self.log_start_offset, self.log_end_offset)
            self.damaged = self.damaged or None

    def offset_for_timestamp(self, timestamp: int) -> TimestampedOffset | None:
        """Return the first record whose timestamp is `timestamp` or later. The event loop uses the two parts of this,
        and has a thread search batches that are not cheap."""
        with self.log_directory.reading():
            from_offset = self.log_start_offset
            while (batch := self.batch_with_timestamp(timestamp, from_offset)) is not None:
                found = batch.search()
                if found is not None:
                    return found
                from_offset = batch.header.next_offset
            return None

    def batch_with_timestamp(self, timestamp: int, from_offset: int) -> BatchToSearch | None:
        """Return the first batch that may have a record at `from_offset` or later whose timestamp is `timestamp` or
        later. If it has none, search on after the batch."""
        with self.log_directory.reading():
            return batch_with_timestamp(self.segments, timestamp, from_offset, self.config.max_message_bytes)

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
        """Number of data records from the log start offset on."""
        with self.log_directory.reading():
            return self._record_count.since(self.log_start_offset)

    # ---- cut

    def truncate_to(self, offset: int) -> int:
        """Remove the batches that reach `offset` or beyond. Return the new end: `offset` or the start of a batch below
        it."""
        if offset >= self.log_end_offset:
            return self.log_end_offset
        if offset < self.segments.first.base_offset:
            self.truncate_fully_and_start_at(offset)
            return offset
        self._truncations += 1
        try:
            self._delete(self.segments.remove_after(offset)[::-1])
            end_offset = self.segments.active.truncate_at(offset)
            self.epochs.truncate_from_end(end_offset, save=not self._gate.is_threaded)
        except OSError as error:
            raise self.log_directory.fail(error) from error
        self._tail.note_truncation(self.recovery_point)
        self.offsets.truncate_to(end_offset)
        self._was_cut_at(end_offset)
        high_watermark = self.offsets.high_watermark  # transactions that ended below it are complete
        rebuild_producers(self.segments, self._snapshots, self.producers, end_offset, high_watermark=high_watermark)
        self._find_last_stable()
        self.wait_for_sync(self.segments.active.file, self.epochs.unsaved())
        return end_offset

    def truncate_fully_and_start_at(self, offset: int, now_ms: int = NO_TIMESTAMP) -> None:
        """Remove all data. The log begins and ends at `offset`."""
        self._truncations += 1
        try:
            self._delete(list(self.segments)[::-1])
            self.segments.replace_all(self._tail.create_segment(offset, now_ms))
            self.epochs.clear()
            self._snapshots.remove_from(-1)
        except OSError as error:
            raise self.log_directory.fail(error) from error
        self._tail.note_truncation(self.recovery_point)
        self.producers.clear()
        self.offsets.restart_at(offset)
        self._was_cut_at(offset)
        self.recovery_point = self.ready_offset = offset

    def note_checkpointed_recovery_point(self, offset: int) -> None:
        """Note that the recovery point checkpoint has `offset` for this log, which ended there before."""
        self._tail.note_truncation(offset)

    def _was_cut_at(self, end_offset: int) -> None:
        self.recovery_point = min(self.recovery_point, end_offset)
        self.first_dirty_offset = min(self.first_dirty_offset, end_offset)
        self.ready_offset = min(self.ready_offset, end_offset)
        self._record_count.forget()
        self._drop_gone_damage()

    def increment_log_start_offset(self, offset: int) -> None:
        """Advance the log start offset and delete the segments that hold only older records."""
        if offset > self.log_end_offset:
            raise OffsetOutOfRangeError(offset, self.log_start_offset, self.log_end_offset)
        if offset <= self.log_start_offset:
            return
        self.epochs.truncate_from_start(offset, save=False)
        self.offsets.delete_before(offset)
        self._drop_gone_damage()
        self._find_last_stable()
        try:
            self._delete(self.segments.remove_before(offset), sync=False)
        except OSError as error:
            raise self.log_directory.write_failed(error) from error

    def retire_segments(self, now_ms: int) -> int:
        """Delete segments beyond `retention.ms` and `retention.bytes`, but nothing above the high watermark.

        Return the number of deleted segments."""
        before = len(self.segments)
        offsets = self.offsets
        start_offset = retained_from(self.segments, self.config, now_ms, offsets.high_watermark, offsets.log_end)
        if start_offset == self.log_end_offset and self.segments.active.size_bytes:
            self._tail.roll(self.log_end_offset, now_ms)
            before += 1
        self.increment_log_start_offset(start_offset)
        return before - len(self.segments)

    def _delete(self, removed: list[Segment], *, sync: bool = True) -> None:
        paths = self._tail.set_aside(removed, sync)
        if paths and self.on_files_deleted is not None:
            self.on_files_deleted(paths)

    def swap_in(self, base_offsets: Sequence[int], truncations: int) -> bool:
        """Replace the segments at `base_offsets` with the cleaned segment.

        Return False if the segments have been deleted or truncated since the cleaner read them, which `truncations`
        tells."""
        old = self.segments.find_closed(base_offsets)
        if old is None or truncations != self._truncations:
            return False
        self.log_directory.check_online()
        try:
            paths = self._tail.swap_in(old)
        except OSError as error:
            raise self.log_directory.fail(error) from error
        self.has_gaps = True
        self._record_count.forget()
        if self.on_files_deleted is not None:
            self.on_files_deleted(paths)
        return True

    @property
    def truncations(self) -> int:
        """How often the end of the log was truncated. Earlier reads may be invalid after a truncation."""
        return self._truncations

    # ---- flush and close

    def flush(self) -> None:
        """Sync the whole log before returning."""
        self._flusher.flush_now(self)

    def flush_soon(self) -> None:
        """Like `flush`, but in a thread if there is one."""
        self._flusher.request_soon(self)

    def plan_flush(self) -> FlushPlan:
        """Plan a flush, including the files that the gate waits for: the recovery point must not pass them."""
        files = [*self._gate.files_to_sync(), *self._tail.files_to_sync()]
        return FlushPlan(files, self.log_end_offset, self._truncations)

    def complete_flush(self, plan: FlushPlan) -> None:
        if self._is_closed:
            return
        if plan.truncations == self._truncations and self._gate.has_synced(plan.files):
            self._tail.forget_synced(plan.end_offset)
            self.recovery_point = max(self.recovery_point, plan.end_offset)
        self._gate.forget_synced()
        self._maybe_advance_ready()

    @property
    def _is_flush_due(self) -> bool:
        return self.log_end_offset - self.recovery_point >= self.config.flush_messages

    def wait_for_sync(self, *files: Syncable) -> None:
        """Hold back batches appended from now on until these files are synced."""
        self._is_held = True
        self._gate.close(*files)

    def _maybe_advance_ready(self) -> None:
        """Make everything ready that does not wait for a sync."""
        if self._is_closed:
            return
        if not self._gate.is_open:
            self._maybe_report_no_room()
            return
        before = self.ready_offset
        if self._is_flush_due:
            self.ready_offset = max(before, self.recovery_point)
            self._flusher.request(self)
        else:
            self._is_held = False
            self.ready_offset = self.log_end_offset
        if self.ready_offset != before and self.on_ready is not None:
            self.on_ready()

    @property
    def awaits_sync(self) -> bool:
        """Whether segment data or segment file names may not be on disk yet."""
        return self._tail.awaits_sync

    def _maybe_report_no_room(self) -> None:
        """Call `on_ready` although nothing is ready: those who wait for this log may continue with other logs."""
        if self.lacks_room and self.on_ready is not None:
            self.on_ready()

    @property
    def lacks_room(self) -> bool:
        """Whether a full disk prevents the acknowledgement of appended batches."""
        return not self._gate.is_open and self._gate.lacks_room

    def retry_pending_sync(self) -> None:
        """Retry the pending sync: the disk may have space again."""
        self._gate.try_again()

    def close(self) -> None:
        """Close cleanly: sync the log and its indexes and take a producer snapshot."""
        if self._is_closed:
            return
        self.finish_closing(self.sync_for_closing())

    def sync_for_closing(self) -> FlushPlan | None:
        """Sync everything that `close` syncs. May run in any thread while nobody else uses the log."""
        self.log_directory.check_online()
        if self._is_closed or self._is_unchanged_since_open():
            return None
        try:
            self.segments.active.seal(sync=True)
            self._snapshots.take(self.producers, self.log_end_offset)
            self.epochs.save()
        except OSError as error:
            raise self.log_directory.fail(error) from error
        try:
            plan = self.plan_flush()
            sync_files(plan.files)
        except OSError as error:
            raise self.log_directory.sync_failed(error) from error
        return plan

    def finish_closing(self, plan: FlushPlan | None) -> None:
        """Tell those who wait for the sync, and release the files."""
        if plan is not None:
            self.complete_flush(plan)
        self.abandon()

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def _is_unchanged_since_open(self) -> bool:
        """Return whether nothing has changed since the log was opened after a clean shutdown."""
        has_snapshot = self._snapshots.offsets[-1:] == [self.log_end_offset]
        is_synced = self._gate.is_open and self.epochs.is_saved and not self._tail.awaits_sync
        return self.recovery_point == self.log_end_offset and has_snapshot and is_synced

    def abandon(self) -> None:
        """Release the files without writing to disk: the log is deleted, or its directory is offline."""
        self._is_closed = True
        self._flusher.forget(self)
        self._gate.abandon()
        for segment in self.segments:
            segment.close()
