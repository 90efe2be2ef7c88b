"""Move a log to another log directory of its broker.

    begin           <target>/<topic>-<n>.<hex>-future   an empty copy
    catch up        read a piece of the original, append it to the copy; repeat while the original grows
    put in place    in one turn of the event loop, so that nothing is appended in between:
                    copy the last piece, sync, rename the copy to its final name, open it, delete the original

A crash before the rename leaves the original and a copy that is discarded. A crash after it leaves two logs with the
same content; the next start renames one of them away. If the original is truncated during the move, the copy starts
over.
"""

import os
from collections.abc import Sequence
from contextlib import suppress

from sskafka.model.buffers import Buffer
from sskafka.records.batch import CorruptBatchError, whole_batches
from sskafka.storage.broker_directory import LogDir
from sskafka.storage.errors import StorageError
from sskafka.storage.file_slice import FileSlice
from sskafka.storage.log import Log
from sskafka.storage.partition_directory import FUTURE_SUFFIX, directory_name, set_aside_name
from sskafka.storage.recovery.opening import KnownOffsets, make_log, open_log, recover_files


class LogMove:
    __slots__ = ("_cleaned_before", "_name", "_truncations", "copy", "original", "source", "target")

    def __init__(self, source: LogDir, target: LogDir, original: Log, now_ms: int) -> None:
        topic_partition = original.topic_partition
        self.source = source
        self.target = target
        self.original = original
        self._name = directory_name(topic_partition, target.meta.partition_base)
        self._truncations = original.truncations
        self._cleaned_before = source.cleaned_before(topic_partition)
        self.copy = self._create_copy(now_ms)

    def _create_copy(self, now_ms: int) -> Log:
        """Create an empty log. A full disk is temporary: nothing is lost, and the original stays in service."""
        original, target = self.original, self.target
        path = os.path.join(target.path, set_aside_name(self._name, os.urandom(16).hex(), FUTURE_SUFFIX))
        known = KnownOffsets(original.segments.first.base_offset, 0, False, None, None)
        try:
            recovered = recover_files(target.disk, path, original.config, now_ms, known)
            recovered.sync()
        except OSError as error:
            failure = target.health.write_failed(error)
            with suppress(OSError):
                target.disk.remove_tree(path)
            raise failure from error
        return make_log(
            target.health,
            path,
            original.topic_partition,
            original.config,
            recovered,
            target.flusher,
            original.topic_id,
        )

    @property
    def lag(self) -> int:
        """Number of offsets that the copy does not have yet."""
        return self.original.log_end_offset - self.copy.log_end_offset

    @property
    def can_go_on(self) -> bool:
        return self.original.is_in_service and self.copy.is_in_service

    def next_piece(self, max_bytes: int) -> list[FileSlice]:
        """Return the next slices to read, or an empty list if the copy has caught up."""
        original = self.original
        if original.truncations != self._truncations:
            self._truncations = original.truncations
            self.copy.truncate_fully_and_start_at(original.segments.first.base_offset)
        offset = max(self.copy.log_end_offset, original.log_start_offset)
        return original.read(offset, max_bytes, original.log_end_offset)

    def read(self, pieces: Sequence[FileSlice]) -> list[Buffer]:
        """Read the slices of the next piece. May run in any thread. Raise CorruptBatchError if a batch is damaged: its
        checksum does not cover its offset and its length, which tell what comes next."""
        with self.original.log_directory.reading():
            found = [piece.read() for piece in pieces]
            is_damaged = any(piece.is_damaged(data) for piece, data in zip(pieces, found, strict=True))
        if is_damaged or not whole_batches(memoryview(found[0])):
            where = f"{self.original.directory}, offset {self.copy.log_end_offset} or later"
            raise CorruptBatchError(f"a batch is damaged in {where}")
        return found

    def append(self, piece: Buffer, now_ms: int) -> None:
        """Append a piece, unless the original was truncated since the read. The last batch may be incomplete."""
        batches = whole_batches(memoryview(piece))
        if batches and self.original.truncations == self._truncations:
            self.copy.append_as_follower(batches, now_ms)

    def put_in_place(self, now_ms: int, high_watermark: int | None) -> Log:
        """Rename the copy, which now holds everything that the original has, to its final name and open it."""
        self._catch_up_now(now_ms)
        copy, target, original = self.copy, self.target, self.original
        path = os.path.join(target.path, self._name)
        try:
            copy.increment_log_start_offset(original.log_start_offset)
            copy.epochs.replace(original.epochs.entries)
            copy.close()
            if self._cleaned_before is not None or copy.has_gaps:
                target.remember_cleaned(original.topic_partition, self._first_dirty_offset)
            target.disk.rename(copy.directory, path)
            target.disk.sync_directory(target.path)
        except OSError as error:
            raise target.health.fail(error) from error
        return open_log(
            target.health,
            path,
            original.topic_partition,
            original.config,
            now_ms=now_ms,
            flusher=target.flusher,
            topic_id=original.topic_id,
            log_start_offset=original.log_start_offset,
            recovery_point=original.log_end_offset,
            was_clean_stop=True,
            cleaned_before=target.cleaned_before(original.topic_partition),
            high_watermark=high_watermark,
        )

    @property
    def _first_dirty_offset(self) -> int:
        """Batches that were compacted after the move began may have been copied before."""
        return self.original.log_start_offset if self._cleaned_before is None else self._cleaned_before

    def _catch_up_now(self, now_ms: int) -> None:
        while pieces := self.next_piece(1 << 20):
            for data in self.read(pieces):
                self.append(data, now_ms)
        if self.lag:
            raise StorageError(f"{self.copy!r} does not hold everything of {self.original!r}")
