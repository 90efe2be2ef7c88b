"""Durability of a log: which records are on the disk, which may be acknowledged, and how the log is closed.

                       recovery point        ready       log end
    |-- segment --|-- segment --|--- active segment --|------------|
              known to be on disk                     | acknowledged only after a pending sync: a flush that
                                                      | is due, or the files that sync_gate.py waits for

Syncs run in other threads, on files that were handed out (`plan_flush`). Everything else runs on one thread.
"""

from collections.abc import Callable

from sskafka.model.ids import TopicPartition, Uuid
from sskafka.records.batch import NO_TIMESTAMP
from sskafka.storage.errors import ClosedLogError, StorageError
from sskafka.storage.flusher import Flusher, FlushPlan, Syncable, sync_files
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.log_tail import LogTail
from sskafka.storage.readable_log import LogParts, ReadableLog
from sskafka.storage.sync_gate import SyncGate


class DurableLog(ReadableLog):
    __slots__ = (
        "_flusher",
        "_gate",
        "_is_closed",
        "_is_held",
        "_snapshots",
        "_tail",
        "_truncations",
        "last_flush_ms",
        "on_ready",
        "producers",
        "ready_offset",
        "recovery_point",
    )

    def __init__(
        self,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        parts: LogParts,
        log_directory: LogDirHealth,
        flusher: Flusher,
    ) -> None:
        super().__init__(directory, topic_partition, topic_id, config, parts, log_directory)
        self.recovery_point = parts.recovery_point
        self.ready_offset = parts.log_end_offset
        """Everything below may be acknowledged."""
        self.on_ready: Callable[[], None] | None = None
        self.last_flush_ms = NO_TIMESTAMP
        self.producers = parts.producers
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

    @property
    def is_in_service(self) -> bool:
        """Return whether the log is open, not deleted, and its directory online."""
        return not self._is_closed and self.log_directory.failure is None

    def check_open(self) -> None:
        """Raise unless the log may be changed. Everything that changes files calls this first."""
        if self._is_closed:
            raise ClosedLogError(f"the log of {self.topic_partition} is closed")
        self.log_directory.check_online()

    def write_failed(self, error: OSError) -> StorageError:
        """Translate an error of a thread that wrote to the log's directory. The directory of a closed log may have been
        renamed or removed in the meantime, which is no failure of the disk."""
        if self._is_closed:
            return ClosedLogError(f"the log of {self.topic_partition} was closed in the meantime")
        return self.log_directory.write_failed(error)

    @property
    def truncations(self) -> int:
        """How often the end of the log was truncated. Earlier reads may be invalid after a truncation."""
        return self._truncations

    # ---- flush

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
        """Call `on_ready` although nothing is ready, so that callers that wait continue with other logs."""
        if self.lacks_room and self.on_ready is not None:
            self.on_ready()

    @property
    def lacks_room(self) -> bool:
        """Whether a full disk prevents the acknowledgement of appended batches."""
        return not self._gate.is_open and self._gate.lacks_room

    def retry_pending_sync(self) -> None:
        """Retry the pending sync: the disk may have space again."""
        self._gate.try_again()

    # ---- close

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
        """Complete the flush for requests that wait for it, and release the files."""
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
        self._tail.abandon()
        for segment in self.segments:
            segment.close()
        # Without the references that lead back to the log, a deleted partition is freed with its last user. The garbage
        # collector would free thousands of them at once, and keep the event loop busy.
        self.on_ready = None
