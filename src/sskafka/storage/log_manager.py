"""All logs of a broker, across its log directories.

    LogManager.open     locks the directories, checks that they belong to this node, removes the clean-shutdown files
    open_log            a partition's log: the one on disk, recovered, or a new one in the directory with the fewest
    delete_log          takes the log out of service at once and removes its files later
    close               syncs everything and writes the clean-shutdown files

Periodic work is done by plain methods that the broker calls with the time: `flush_due_logs`, `roll_due_segments`,
`expire_producers`, `remove_deleted_files` and the checkpoints. The first three yield after every log, so that the
caller can let other work come in between: there may be thousands of logs.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from sskafka.model.cordoned_directories import ALL_DIRECTORIES
from sskafka.model.counters import Sample
from sskafka.model.ids import ZERO_UUID, TopicPartition, Uuid
from sskafka.runtime.background import SyncBackground
from sskafka.storage.broker_directory import LogDir
from sskafka.storage.clean_shutdown import NO_BROKER_EPOCH
from sskafka.storage.directory_opening import DirectoryOpening, Identity
from sskafka.storage.disk import Disk
from sskafka.storage.errors import LogDirectoryError, StorageError, TemporaryStorageError
from sskafka.storage.log import Log
from sskafka.storage.log_age import LogAge, age_of_log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.log_move import LogMove
from sskafka.storage.meta_properties import MetaProperties
from sskafka.storage.partition_directory import DELETE_SUFFIX, STRAY_SUFFIX, directory_name, set_aside_name
from sskafka.storage.partition_metadata import UnsavedTopicId, read_topic_id
from sskafka.storage.recovery.opening import RecoveredFiles, make_log, recover_files
from sskafka.storage.recovery.pool import RecoveryPool
from sskafka.storage.recovery.report import RecoveryReport

_log = logging.getLogger(__name__)

PREFERRED_MAX = 10_000


class LogToRecover(NamedTuple):
    topic_partition: TopicPartition
    topic_id: Uuid
    config: LogConfig


class LogManager:
    def __init__(
        self,
        disk: Disk,
        directories: Sequence[LogDir],
        metadata_directory: LogDir,
        background: SyncBackground | None,
    ) -> None:
        self.directories = list(directories)
        self.metadata_directory = metadata_directory
        self._disk = disk
        self._background = background
        self._pending_deletions: list[tuple[int, str]] = []  # when a file or directory may be removed, and its path
        self.recovery = RecoveryReport()
        self._recovering = RecoveryPool()
        self.preferred: dict[TopicPartition, LogDir] = {}
        """The directories in which to create logs that do not exist yet."""
        self._out_of_reach: set[tuple[TopicPartition, Uuid]] = set()
        self._set_aside_now: list[tuple[int, str]] = []  # files, and how long to keep them from now on
        for directory in self._all_directories():
            self._pending_deletions += [(0, path) for path in (*directory.deleted, *directory.interrupted)]

    @classmethod
    def open(
        cls,
        disk: Disk,
        paths: Sequence[str],
        *,
        node_id: int,
        metadata_path: str | None = None,
        partition_base: int = 0,
        format_as: Callable[[], MetaProperties] | None = None,
        background: SyncBackground | None = None,
        on_failure: Callable[[LogDirHealth], None] | None = None,
    ) -> "LogManager":
        """Open the log directories. `metadata_path` holds the metadata log; by default the first of `paths`.

        A directory without meta.properties gets the result of `format_as`, or is refused."""
        assert paths, "a broker needs at least one log directory"
        metadata_path = metadata_path or paths[0]
        opening = DirectoryOpening(disk, Identity(node_id, partition_base, format_as), background, on_failure)
        opened = opening.open(paths, metadata_path)
        return cls(disk, [opened[path] for path in paths], opened[metadata_path], background)

    # ---- logs

    def __iter__(self) -> Iterator[Log]:
        for directory in self._all_directories():
            yield from directory.logs.values()

    def get(self, topic_partition: TopicPartition) -> Log | None:
        for directory in self._all_directories():
            log = directory.logs.get(topic_partition)
            if log is not None:
                return log
        return None

    def open_log(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        now_ms: int,
        *,
        directory: LogDir | None = None,
        must_exist: bool = False,
    ) -> Log:
        """Return the partition's log from disk, or a new one in `directory` or in the directory with the fewest logs.

        If a log must exist and is missing while a directory is offline, the log is assumed to be there: none is
        created."""
        known = self.get(topic_partition)
        if known is not None:
            return known
        home = self._log_dir_on_disk(topic_partition, topic_id)
        if home is None:
            self._check_within_reach(topic_partition, topic_id, must_exist)
            home = directory or self.preferred.get(topic_partition) or self._directory_with_fewest_logs()
        name = directory_name(topic_partition, home.meta.partition_base)
        path = os.path.join(home.path, name)
        is_new = topic_partition not in home.unclaimed
        if is_new:
            home.forget_offsets(topic_partition)
        report = None if is_new else self.recovery
        recovered = self._recovering.take(topic_partition)
        if recovered is None:
            recovered = self._recover(home, path, topic_partition, config, now_ms, is_new)
        log = make_log(home.health, path, topic_partition, config, recovered, home.flusher, topic_id, report)
        try:
            self._adopt(home, log, now_ms, is_new)
        except StorageError:  # a later attempt must find the directory unclaimed, not create another one
            log.abandon()
            raise
        home.claim(topic_partition)
        self.preferred.pop(topic_partition, None)
        return log

    def _recover(
        self,
        home: LogDir,
        path: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        now_ms: int,
        is_new: bool,
    ) -> RecoveredFiles:
        try:
            recovered = recover_files(home.disk, path, config, now_ms, home.known_offsets(topic_partition))
            recovered.sync()
            return recovered
        except OSError as error:
            raise (home.health.write_failed(error) if is_new else home.health.sync_failed(error)) from error

    # ---- recovery in threads

    @property
    def has_logs_to_recover(self) -> bool:
        """Whether an unclean shutdown left logs that nobody has asked for yet."""
        return any(directory.unclaimed and not directory.was_clean_stop for directory in self._online_directories())

    def needs_recovery(self, topic_partition: TopicPartition) -> bool:
        """Return whether an unclean shutdown left a log of the partition that was not opened or recovered since."""
        return topic_partition not in self._recovering and any(
            topic_partition in directory.unclaimed and not directory.was_clean_stop
            for directory in self._online_directories()
        )

    def recover_in_threads(
        self, wanted: Iterable[LogToRecover], now_ms: int, threads: int, done: Callable[[], None]
    ) -> None:
        """Recover the logs that an unclean shutdown left, in `threads` threads for each directory.

        `done` is called from any thread when all are recovered. `open_log` uses the results."""
        works: dict[TopicPartition, tuple[LogDirHealth, Callable[[], RecoveredFiles]]] = {}
        for topic_partition, topic_id, config in wanted:
            try:
                home = self._log_dir_on_disk(topic_partition, topic_id)
            except StorageError:
                continue  # `open_log` tries again
            if home is None or not home.is_online:
                continue  # of a deleted topic, or in a directory that failed in the meantime
            path = os.path.join(home.path, home.unclaimed[topic_partition])
            known = home.known_offsets(topic_partition)
            works[topic_partition] = home.health, partial(recover_files, home.disk, path, config, now_ms, known)
        self._recovering.submit_all(works, threads, done)

    def end_recovery(self) -> None:
        """End the recovery threads after startup and close recovered files that no log uses."""
        self._recovering.close()

    def _check_within_reach(self, topic_partition: TopicPartition, topic_id: Uuid, must_exist: bool) -> None:
        failures = [directory.health.failure for directory in self.directories if not directory.is_online]
        if must_exist and failures:
            self._out_of_reach.add((topic_partition, topic_id))
        if (topic_partition, topic_id) in self._out_of_reach:
            raise LogDirectoryError(f"{topic_partition} is in none of the other directories: {failures[0]}")

    def _adopt(self, home: LogDir, log: Log, now_ms: int, is_new: bool) -> None:
        self._save_identity(home, log, is_new)
        log.last_flush_ms = now_ms
        log.on_files_deleted = partial(self._schedule_deletion, log)
        home.logs[log.topic_partition] = log

    def _log_dir_on_disk(self, topic_partition: TopicPartition, topic_id: Uuid) -> LogDir | None:
        """Return the directory that holds the log. If an interrupted move left two copies, keep the newer one."""
        found: dict[LogDir, str] = {}
        for directory in self._all_directories():
            name = directory.unclaimed.get(topic_partition)
            if name is None:
                continue
            path = os.path.join(directory.path, name)
            with directory.health.reading():
                known_id = read_topic_id(self._disk, path)
            if topic_id in {ZERO_UUID, known_id or topic_id}:
                found[directory] = path
            else:
                self._set_aside(directory, topic_partition, STRAY_SUFFIX)
        return self._newest(topic_partition, found) if len(found) > 1 else next(iter(found), None)

    def _newest(self, topic_partition: TopicPartition, found: Mapping[LogDir, str]) -> LogDir:
        newest = max(found, key=lambda directory: self._age(directory, found[directory]))
        for directory in found:
            if directory is not newest:
                self._set_aside(directory, topic_partition, STRAY_SUFFIX)
        return newest

    def _age(self, directory: LogDir, path: str) -> LogAge:
        with directory.health.reading():
            return age_of_log(self._disk, path)

    def _save_identity(self, home: LogDir, log: Log, is_new: bool) -> None:
        """Save what must be durable before an acknowledgement, for a new log and for a log without a topic id."""
        try:
            if log.topic_id != ZERO_UUID and read_topic_id(self._disk, log.directory) is None:
                log.wait_for_sync(UnsavedTopicId(self._disk, log.directory, log.topic_id))
        except OSError as error:
            raise home.health.write_failed(error) from error
        if is_new:
            log.wait_for_sync(home.names.ticket())

    def _directory_with_fewest_logs(self) -> LogDir:
        """Return the directory for a new replica. A cordoned directory is used only if no other is left."""
        online = [directory for directory in self.directories if directory.is_online]
        if not online:
            raise LogDirectoryError("every log directory is offline")
        open_ones = [directory for directory in online if not directory.is_cordoned] or online
        return min(open_ones, key=lambda directory: len(directory.logs) + len(directory.unclaimed))

    def cordon(self, paths: Sequence[str]) -> None:
        """Place no new replicas in the directories at `paths`; * stands for all of them."""
        for directory in self.directories:
            directory.is_cordoned = ALL_DIRECTORIES in paths or directory.path in paths

    @property
    def cordoned_directory_ids(self) -> list[Uuid]:
        """Ids of the directories that receive no new replicas. Any thread may read them."""
        cordoned = (directory for directory in self.directories if directory.is_cordoned)
        return [directory.directory_id for directory in cordoned if directory.directory_id is not None]

    # ---- moves between directories

    def directory_at(self, path: str) -> LogDir | None:
        return next((directory for directory in self.directories if directory.path == path), None)

    def log_dir_of(self, topic_partition: TopicPartition) -> LogDir | None:
        return next((directory for directory in self.directories if topic_partition in directory.logs), None)

    def begin_move(self, topic_partition: TopicPartition, target: LogDir, now_ms: int) -> LogMove:
        """Begin to copy the log to `target`; see log_move.py."""
        source = self.log_dir_of(topic_partition)
        assert source is not None, "only an open log can be moved"
        move = LogMove(source, target, source.logs[topic_partition], now_ms)
        target.futures[topic_partition] = move.copy
        return move

    def finish_move(self, move: LogMove, now_ms: int, high_watermark: int | None = None) -> Log:
        """Replace the original with the copy, which has caught up, and delete the original. Return the new log."""
        log = move.put_in_place(now_ms, high_watermark)
        self._adopt(move.target, log, now_ms, is_new=True)
        move.target.futures.pop(log.topic_partition, None)
        move.target.checkpoint_cleaned_offsets()
        move.source.logs.pop(log.topic_partition).abandon()
        path = self._set_aside(move.source, log.topic_partition, DELETE_SUFFIX)
        self._pending_deletions.append((now_ms + log.config.file_delete_delay_ms, path))
        return log

    def abandon_move(self, move: LogMove) -> None:
        """Keep the original and remove the copy."""
        move.target.futures.pop(move.original.topic_partition, None)
        move.copy.abandon()
        self._pending_deletions.append((0, move.copy.directory))

    def delete_log(self, topic_partition: TopicPartition, now_ms: int) -> None:
        """Delete the log. Readers that hold slices of it may finish."""
        for directory in self._all_directories():
            log = directory.logs.pop(topic_partition, None)
            if log is not None:
                log.abandon()
                path = self._set_aside(directory, topic_partition, DELETE_SUFFIX)
                self._pending_deletions.append((now_ms + log.config.file_delete_delay_ms, path))

    def forget_offline(self, topic_partition: TopicPartition) -> None:
        """Forget a replica that was removed from this broker while its directory was offline.

        Its files there are ignored from now on. If the replica is assigned again, it starts in another directory."""
        self._out_of_reach = {known for known in self._out_of_reach if known[0] != topic_partition}
        for directory in self._all_directories():
            if not directory.is_online and topic_partition in directory.logs:
                directory.logs.pop(topic_partition).abandon()

    def stray_directories(self) -> list[str]:
        """Return partition directories that no open log uses. They are left unchanged."""
        return [
            os.path.join(directory.path, name)
            for directory in self._all_directories()
            for name in directory.unclaimed.values()
        ]

    def _set_aside(self, directory: LogDir, topic_partition: TopicPartition, suffix: str) -> str:
        name = directory.forget_partition(topic_partition)
        target = os.path.join(directory.path, set_aside_name(name, os.urandom(16).hex(), suffix))
        try:
            self._disk.rename(os.path.join(directory.path, name), target)
        except OSError as error:
            raise directory.health.fail(error) from error
        directory.sync_names()
        if suffix == STRAY_SUFFIX:
            _log.warning("%s does not hold the current log of %s; renamed to %s", name, topic_partition, target)
        return target

    # ---- periodic work

    def flush_due_logs(self, now_ms: int) -> Iterator[None]:
        """Flush logs whose records have been unsynced for `flush.ms`, and logs whose sync failed on a full disk."""
        for log in self._logs_in_service():
            log.retry_pending_sync()
            if now_ms - log.last_flush_ms >= log.config.flush_ms:
                log.last_flush_ms = now_ms
                if log.recovery_point < log.log_end_offset:
                    log.flush_soon()
            yield

    def check_shortages(self) -> None:
        """Find out whether a full directory has space again."""
        for directory in self._online_directories():
            directory.health.maybe_end_shortages()

    def samples(self) -> Iterator[Sample]:
        directories = list(self._all_directories())
        for directory in directories:
            yield from directory.health.samples()
        offline = sum(directory.health.failure is not None for directory in directories)
        yield Sample("kafka_log_logmanager_offlinelogdirectorycount", (), offline)

    def roll_due_segments(self, now_ms: int) -> Iterator[None]:
        """Roll segments that are due. If the disk is full, a log is retried the next time and does not delay other
        logs."""
        for log in self._logs_in_service():
            try:
                log.maybe_roll(now_ms)
            except TemporaryStorageError:
                continue  # the directory has logged it
            except StorageError as error:
                _log.warning("%s cannot roll a new segment: %s", log.topic_partition, error)
            yield

    def expire_producers(self, now_ms: int, expiration_ms: int) -> Iterator[None]:
        for log in list(self):
            log.producers.expire(now_ms, expiration_ms)
            yield

    def remove_deleted_files(self, now_ms: int) -> None:
        """Remove files after `file.delete.delay.ms`, in a thread, because removing a large file takes time."""
        self._pending_deletions += [(now_ms + delay_ms, path) for delay_ms, path in self._set_aside_now]
        self._set_aside_now.clear()
        due = [path for due_ms, path in self._pending_deletions if due_ms <= now_ms]
        self._pending_deletions = [(due_ms, path) for due_ms, path in self._pending_deletions if due_ms > now_ms]
        if not due:
            return
        if self._background is None:
            self._remove(due)
        else:
            self._background.in_thread(lambda: self._remove(due), _raise_error)

    def checkpoint_recovery_points(self) -> None:
        self._in_each_directory(lambda directory: directory.checkpoint_recovery_points())

    def checkpoint_log_start_offsets(self) -> None:
        self._in_each_directory(lambda directory: directory.checkpoint_log_start_offsets())

    def checkpoint_cleaned_offsets(self) -> None:
        self._in_each_directory(lambda directory: directory.checkpoint_cleaned_offsets())

    def checkpoint_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        self._in_each_directory(lambda directory: directory.checkpoint_high_watermarks(high_watermarks))

    def _in_each_directory(self, act: Callable[[LogDir], None]) -> None:
        """Run `act` for every online directory, then raise the first error."""
        errors: list[StorageError] = []
        for directory in self._online_directories():
            try:
                act(directory)
            except StorageError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def high_watermark(self, topic_partition: TopicPartition) -> int:
        """Return the high watermark that was checkpointed before startup."""
        return max(directory.high_watermark(topic_partition) for directory in self._all_directories())

    @property
    def offline_directory_ids(self) -> list[Uuid]:
        """Ids of the directories that have failed. Any thread may read them."""
        failed = (directory for directory in self.directories if not directory.is_online)
        return [directory.directory_id for directory in failed if directory.directory_id is not None]

    @property
    def previous_broker_epoch(self) -> int:
        """The broker epoch of the last clean shutdown, or -1 unless every directory was shut down cleanly."""
        epochs = {directory.previous_broker_epoch for directory in self._all_directories()}
        return epochs.pop() if len(epochs) == 1 else NO_BROKER_EPOCH

    # ---- stop

    def close(self, broker_epoch: int = NO_BROKER_EPOCH) -> None:
        """Close every online directory, then raise the first error."""
        self.end_recovery()
        errors: list[StorageError] = []
        for directory in self._all_directories():
            if not directory.is_online and not directory.logs:
                directory.release()
                continue  # offline since startup, or empty
            try:
                directory.close(broker_epoch)
            except StorageError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def release(self) -> None:
        """Release everything without a clean shutdown, as a crash would."""
        self.end_recovery()
        for directory in self._all_directories():
            directory.release()

    # ---- parts

    def set_preferred_directory(self, topic_partition: TopicPartition, directory: LogDir) -> None:
        """Create the log in this directory if it is created later. Only the newest preferences are kept."""
        self.preferred.pop(topic_partition, None)
        while len(self.preferred) >= PREFERRED_MAX:
            del self.preferred[next(iter(self.preferred))]
        self.preferred[topic_partition] = directory

    def _all_directories(self) -> list[LogDir]:
        return list(dict.fromkeys([*self.directories, self.metadata_directory]))

    def _online_directories(self) -> list[LogDir]:
        return [directory for directory in self._all_directories() if directory.is_online]

    def _logs_in_service(self) -> Iterator[Log]:
        """Yield each log unless it is closed by then: callers work in many turns, and topics are deleted in between."""
        for log in [log for directory in self._online_directories() for log in directory.logs.values()]:
            if log.is_in_service:
                yield log

    def _schedule_deletion(self, log: Log, paths: list[str]) -> None:
        """Schedule the removal of files. Readers hold the open files; the delay lets operators inspect or save them."""
        self._set_aside_now += [(log.config.file_delete_delay_ms, path) for path in paths]

    def _remove(self, paths: list[str]) -> None:
        for path in paths:
            try:
                if self._disk.is_directory(path):
                    self._disk.remove_tree(path)
                else:
                    self._disk.remove(path)
            except FileNotFoundError:
                pass  # removed together with its directory
            except OSError as error:
                _log.warning("%s could not be removed: %s", path, error)


def _raise_error(error: BaseException | None) -> None:
    if error is not None:
        raise error
