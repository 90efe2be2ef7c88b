"""The log of one partition: batches in segments, in the order of their offsets.

The leader's appends assign offsets, the follower's keep them. An append is all or nothing: the batches are checked
(append_checks.py), written at once (log_tail.py), truncated again if the write fails, and only then made visible in
offsets, indexes, epochs and producer state. readable_log.py has the reads, durable_log.py the flushes. recovery/ opens
and recovers logs.
"""

from collections.abc import Callable, Sequence
from zlib import crc32

from sskafka.model.buffers import Buffer
from sskafka.model.ids import ZERO_UUID, TopicPartition, Uuid
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
from sskafka.storage.durable_log import DurableLog
from sskafka.storage.errors import OffsetOutOfRangeError, UnexpectedAppendOffsetError
from sskafka.storage.flusher import Flusher
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.producers.rebuild import rebuild_producers
from sskafka.storage.readable_log import LogParts
from sskafka.storage.retention import retained_from
from sskafka.storage.segment import Segment
from sskafka.storage.transactions.marker import read_marker


class AppendInfo:
    """What an append has done. A class and no tuple, because compiled code creates its own classes faster."""

    __slots__ = ("append_time_ms", "base_offset", "duplicate", "last_offset", "log_start_offset")

    def __init__(
        self, base_offset: int, last_offset: int, append_time_ms: int, log_start_offset: int, duplicate: bool = False
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.append_time_ms = append_time_ms
        """-1 unless the topic uses LogAppendTime or the batch is a duplicate."""
        self.log_start_offset = log_start_offset
        self.duplicate = duplicate


class Log(DurableLog):
    __slots__ = (
        "_checks",
        "_flush_messages",
        "_rewriting",
        "first_dirty_offset",
        "has_gaps",
        "is_being_rewritten",
        "on_files_deleted",
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
        super().__init__(directory, topic_partition, topic_id, config, parts, log_directory, flusher)
        self.first_dirty_offset = parts.first_dirty_offset
        """The log is compacted below this offset. The log cleaner sets it."""
        self.has_gaps = False
        """Whether the log was compacted, here or by the leader. Recovery must not take its gaps for lost records."""
        self.is_being_rewritten = False
        """Whether a cleaner or a replacement writes new segments. There is one at a time: both use `.cleaned` files."""
        self.on_files_deleted: Callable[[list[str]], None] | None = None
        self.configure(config)

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
        if self._is_closed or self.log_directory.failure is not None:  # asked here first, because every produce does
            self.check_open()
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
        return AppendInfo(base_offset, end_offset - 1, append_time_ms, self.offsets.log_start)

    @property
    def append_checks(self) -> AppendChecks:
        return self._checks

    def append_as_follower(self, batches: Buffer, now_ms: int = NO_TIMESTAMP) -> AppendInfo:
        """Write batches as received from the leader, with their offsets and epochs."""
        self.check_open()
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

    def replace_epochs(self, entries: list[tuple[int, int]]) -> None:
        """Replace the leader epochs by those that were read from the batches."""
        self.check_open()
        self.epochs.replace(entries, save=False)
        self.epochs.truncate_from_start(self.log_start_offset, save=False)
        self.wait_for_sync(self.epochs.unsaved())

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
        self.roll(now_ms)
        return True

    def roll(self, now_ms: int) -> None:
        """Roll a new segment, unless the active one is empty."""
        self.check_open()
        if self.segments.active.size_bytes:
            self._tail.roll(self.log_end_offset, now_ms)

    def abandon(self) -> None:
        super().abandon()
        self.on_files_deleted = None

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

    # ---- cut

    def truncate_to(self, offset: int) -> int:
        """Remove the batches that reach `offset` or beyond. Return the new end: `offset` or the start of a batch below
        it."""
        if offset >= self.log_end_offset:
            return self.log_end_offset
        self.check_open()
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
        self.check_open()
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
        self.check_open()
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
        self.check_open()
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
        self._swap_in(old, base_offsets[:1])
        return True

    def replace_part(self, before: list[Segment], end_offset: int, base_offsets: Sequence[int]) -> bool:
        """Replace the segments below `end_offset` with the cleaned segments at `base_offsets` (part_writer.py).

        Return False if the segments are no longer those of `before`, to which new ones may have been added. Damaged
        ranges in the part are gone afterwards."""
        if list(self.segments)[: len(before)] != before:
            return False
        old = [segment for segment in before if segment.base_offset < end_offset]
        self._swap_in(old, base_offsets)
        for damage in self.damaged or ():
            if damage.end_offset <= end_offset:
                self.forget_damage(damage)
        return True

    def _swap_in(self, old: list[Segment], base_offsets: Sequence[int]) -> None:
        self.check_open()
        try:
            paths = self._tail.swap_in(old, base_offsets)
        except OSError as error:
            raise self.log_directory.fail(error) from error
        self.has_gaps = True
        self._record_count.forget()
        if self.on_files_deleted is not None:
            self.on_files_deleted(paths)
