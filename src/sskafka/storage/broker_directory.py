"""One log directory of a running broker: its lock, its identity, its checkpoints and its logs.

Checkpoints may be written in threads: their contents are copied first, and a lock serializes the writers.
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence

from sskafka.model.ids import TopicPartition, Uuid
from sskafka.runtime.background import SyncBackground
from sskafka.runtime.sync_threads import FEW_LOGS, new_sync_threads
from sskafka.storage.checkpoints import (
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    OffsetCheckpoint,
)
from sskafka.storage.clean_shutdown import NO_BROKER_EPOCH, remove_clean_shutdown_file, write_clean_shutdown_file
from sskafka.storage.disk import Disk, DiskUsage, Lock
from sskafka.storage.errors import LogDirectoryError, StorageError
from sskafka.storage.flusher import Flusher, FlushPlan
from sskafka.storage.log import Log
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.meta_properties import MetaProperties
from sskafka.storage.partition_directory import (
    directory_name,
    is_deleted,
    parse_directory_name,
    parse_future_name,
)
from sskafka.storage.recovery.opening import KnownOffsets

LOCK_FILE = ".lock"
PROGRESS_LINES_MAX = 10
MANY_LOGS = 1000
"""Progress is logged from this number of logs on. With fewer, a clean start takes less than two seconds."""

_log = logging.getLogger(__name__)


class LogDir:
    def __init__(
        self,
        disk: Disk,
        path: str,
        meta: MetaProperties,
        lock: Lock | None,
        background: SyncBackground | None,
        on_failure: Callable[[LogDirHealth], None] | None,
        failure: LogDirectoryError | None = None,
    ) -> None:
        """Open the directory and remove the clean-shutdown file. Nothing may be written to the directory before that.

        A directory with a `failure` is offline from the start, and nothing in it is read."""
        self.path = path
        self.is_cordoned = False
        """Whether the directory receives no new replicas (cordoned.log.dirs)."""
        self.disk = disk
        self.meta = meta
        self.health = LogDirHealth(disk, path, on_failure)
        self.health.failure = failure
        self.flusher = Flusher(self.health, background)
        self.names = SharedSync(disk, path)
        """Syncs the entries of this directory, that is, the names of the logs' own directories."""
        self._renamed = _NamesFlush(self.names)
        self.logs: dict[TopicPartition, Log] = {}
        self.futures: dict[TopicPartition, Log] = {}
        """Copies of logs in other directories, which will replace the originals (future replicas)."""
        self._lock = lock
        broker_epoch = remove_clean_shutdown_file(disk, path) if failure is None else None
        self.was_clean_stop = broker_epoch is not None
        self.previous_broker_epoch = NO_BROKER_EPOCH if broker_epoch is None else broker_epoch
        self._recovery_points = self._checkpoint(RECOVERY_POINTS)
        self._log_start_offsets = self._checkpoint(LOG_START_OFFSETS)
        self._high_watermarks = self._checkpoint(HIGH_WATERMARKS)
        self._cleaned_offsets = self._checkpoint(CLEANED_OFFSETS)
        self._writing = threading.Lock()
        names = [entry.name for entry in disk.entries(path) if entry.is_directory] if failure is None else []
        parsed = [(parse_directory_name(name, meta.partition_base), name) for name in names]
        self.unclaimed = {topic_partition: name for topic_partition, name in parsed if topic_partition is not None}
        self._found_logs = len(self.unclaimed)
        self.deleted = [os.path.join(path, name) for name in names if is_deleted(name)]
        futures = {os.path.join(path, name): parse_future_name(name, meta.partition_base) for name in names}
        self.interrupted = {copy: topic_partition for copy, topic_partition in futures.items() if topic_partition}
        """Copies that a stop interrupted, by path."""

    def _checkpoint(self, name: str) -> OffsetCheckpoint:
        return OffsetCheckpoint(self.disk, os.path.join(self.path, name), is_read=self.is_online)

    @property
    def directory_id(self) -> Uuid | None:
        return self.meta.directory_id

    @property
    def is_online(self) -> bool:
        return self.health.failure is None

    @property
    def usage(self) -> DiskUsage:
        return self.disk.usage(self.path)

    def recovery_point(self, topic_partition: TopicPartition) -> int:
        return self._recovery_points.offsets.get(topic_partition, 0)

    def log_start_offset(self, topic_partition: TopicPartition) -> int:
        return self._log_start_offsets.offsets.get(topic_partition, 0)

    def high_watermark(self, topic_partition: TopicPartition) -> int:
        return self._high_watermarks.offsets.get(topic_partition, 0)

    def known_high_watermark(self, topic_partition: TopicPartition) -> int | None:
        """Return the checkpointed high watermark, or None if the checkpoint has no entry for the partition."""
        return self._high_watermarks.offsets.get(topic_partition)

    def known_offsets(self, topic_partition: TopicPartition) -> KnownOffsets:
        """Return what the checkpoints say about a log that is about to be opened."""
        return KnownOffsets(
            self.log_start_offset(topic_partition),
            self.recovery_point(topic_partition),
            self.was_clean_stop,
            self.cleaned_before(topic_partition),
            self.known_high_watermark(topic_partition),
        )

    def cleaned_before(self, topic_partition: TopicPartition) -> int | None:
        return self._cleaned_offsets.offsets.get(topic_partition)

    def claim(self, topic_partition: TopicPartition) -> None:
        """The log of a partition is open. Tell how far a start has come if the directory has many logs."""
        if self.unclaimed.pop(topic_partition, None) is None or self._found_logs < MANY_LOGS:
            return
        opened = self._found_logs - len(self.unclaimed)
        if opened % (self._found_logs // PROGRESS_LINES_MAX) == 0:
            _log.info("opened %d of %d logs in %s", opened, self._found_logs, self.path)

    def forget_partition(self, topic_partition: TopicPartition) -> str:
        """Stop serving the partition from this directory. Return the name of its directory."""
        name = self.unclaimed.pop(topic_partition, None)
        return name or directory_name(topic_partition, self.meta.partition_base)

    def sync_names(self) -> None:
        """Sync the entries of this directory, in a thread if there is one."""
        self.flusher.for_small_files.request_soon(self._renamed)

    # ---- checkpoints

    def forget_offsets(self, topic_partition: TopicPartition) -> None:
        """Remove a deleted log's checkpoint entries, so that they are not applied to a new log of the same name."""
        with self._writing:
            for checkpoint in self._checkpoints():
                if topic_partition in checkpoint.offsets:
                    self._write(checkpoint, self._of_open_logs(checkpoint.offsets))

    def checkpoint_recovery_points(self) -> None:
        with self._writing:
            points = {tp: log.recovery_point for tp, log in self.logs.copy().items()}
            self._write(self._recovery_points, points)

    def checkpoint_log_start_offsets(self) -> None:
        """Checkpoint the log start offsets that the first segment's name does not tell, or may not after a crash."""
        with self._writing:
            starts = {
                tp: log.log_start_offset
                for tp, log in self.logs.copy().items()
                if log.log_start_offset > log.segments.first.base_offset or (log.log_start_offset and log.awaits_sync)
            }
            self._write(self._log_start_offsets, starts)

    def checkpoint_cleaned_offsets(self) -> None:
        """Checkpoint the first dirty offset of every log that was ever compacted.

        Such a log may have gaps, even if its topic is not compacted now."""
        with self._writing:
            cleaned = {
                tp: log.first_dirty_offset
                for tp, log in self.logs.copy().items()
                if tp in self._cleaned_offsets.offsets or log.has_gaps or log.first_dirty_offset > log.log_start_offset
            }
            self._write(self._cleaned_offsets, cleaned)

    def remember_cleaned(self, topic_partition: TopicPartition, offset: int) -> None:
        """Record the first dirty offset of a log that is about to be placed in this directory."""
        with self._writing:
            known = self._of_open_logs(self._cleaned_offsets.offsets)
            self._write(self._cleaned_offsets, {**known, topic_partition: offset})

    def checkpoint_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Checkpoint the high watermarks of the partitions in this directory. Other partitions keep their entries."""
        with self._writing:
            known = {**self._high_watermarks.offsets, **high_watermarks}
            self._write(self._high_watermarks, self._of_open_logs(known))

    def _checkpoints(self) -> tuple[OffsetCheckpoint, ...]:
        return self._recovery_points, self._log_start_offsets, self._high_watermarks, self._cleaned_offsets

    def _of_open_logs(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {tp: offset for tp, offset in offsets.items() if tp in self.logs}

    def _write(self, checkpoint: OffsetCheckpoint, new: dict[TopicPartition, int]) -> None:
        """Write the checkpoint. Partitions that have not been opened yet keep their old entries."""
        unopened = {tp: offset for tp, offset in checkpoint.offsets.items() if tp in self.unclaimed}
        if self.is_online:
            try:
                checkpoint.write({**unopened, **new})
            except OSError as error:
                raise self.health.write_failed(error) from error

    # ---- stop

    def close(self, broker_epoch: int) -> None:
        """Close and sync all logs, then write the clean-shutdown file, then release the lock."""
        try:
            self.health.check_online()
            close_logs(list(self.logs.values()), self.path)
            self.checkpoint_recovery_points()
            self.checkpoint_log_start_offsets()
            self.checkpoint_cleaned_offsets()
            write_clean_shutdown_file(self.disk, self.path, broker_epoch)
        except OSError as error:
            raise self.health.fail(error) from error
        finally:
            self.release()

    def release(self) -> None:
        for log in (*self.logs.values(), *self.futures.values()):
            log.abandon()
        if self._lock is not None:
            self._lock.release()


class SharedSync:
    """One sync of a directory for all who created a name in it before that sync began.

    If a thousand logs are created together, their names must be synced, but not a thousand times."""

    __slots__ = ("_disk", "_done", "_path", "_syncing", "_tickets")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._tickets = 0
        self._done = 0  # all tickets up to this number are covered by a completed sync
        self._syncing = threading.Lock()

    def ticket(self) -> "Ticket":
        """Return a ticket for the names that exist now."""
        self._tickets += 1
        return Ticket(self, self._tickets)

    def sync_for(self, number: int) -> None:
        """Sync the directory, unless a later sync covers the ticket. May run in any thread."""
        with self._syncing:
            if number > self._done:
                issued = self._tickets
                self._disk.sync_directory(self._path)
                self._done = issued


class Ticket:
    """A ticket as a `Syncable`."""

    __slots__ = ("_number", "_shared")

    def __init__(self, shared: SharedSync, number: int) -> None:
        self._shared = shared
        self._number = number

    def sync(self) -> None:
        self._shared.sync_for(self._number)


class _NamesFlush:
    """A flush of the directory's own entries."""

    __slots__ = ("_names",)

    def __init__(self, names: SharedSync) -> None:
        self._names = names

    def plan_flush(self) -> FlushPlan:
        return FlushPlan([self._names.ticket()], 0, 0)

    def complete_flush(self, plan: FlushPlan) -> None:
        """Do nothing: no acknowledgement waits for this flush."""


def lock_directory(disk: Disk, path: str) -> Lock:
    """Lock the directory and create it if it is missing.

    Raise LogDirectoryError if another process holds the lock, OSError if the disk fails."""
    try:
        disk.make_directory(path)
        return disk.lock(os.path.join(path, LOCK_FILE))
    except BlockingIOError as error:
        raise LogDirectoryError(f"log directory {path} is in use by another broker, which holds its .lock") from error


def close_logs(logs: Sequence[Log], path: str) -> None:
    """Close the logs, all of them even if some fail. Raise the first error.

    A log takes half a dozen syncs, so thousands of logs, one after the other, would take most of a minute. Threads do
    the syncs; requests that wait for a sync are answered on the calling thread."""
    errors: list[StorageError] = []
    if len(logs) <= FEW_LOGS:
        for log in logs:
            log.close()
        return
    with new_sync_threads() as executor:
        syncs = [(log, executor.submit(log.sync_for_closing)) for log in logs if not log.is_closed]
        for number, (log, sync) in enumerate(syncs, start=1):
            try:
                log.finish_closing(sync.result())
            except StorageError as error:
                errors.append(error)
            if number % max(1, len(syncs) // PROGRESS_LINES_MAX) == 0:
                _log.info("closed %d of %d logs in %s", number, len(syncs), path)
    if errors:
        raise errors[0]
