"""The end of a log: write to the active segment, roll new segments, and list the files that a flush must sync.

The log has checked the batches and knows their offsets. This class writes them to the file, adds index entries and
updates the producer state.
"""

import os
from collections.abc import Callable, Iterator, Sequence

from sskafka.model.buffers import Buffer
from sskafka.records.batch import CONTROL, LOG_OVERHEAD_BYTES, BatchHeader
from sskafka.storage import offset_index, time_index
from sskafka.storage.disk import DirectorySync, Disk
from sskafka.storage.errors import StorageError
from sskafka.storage.flusher import Syncable
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.open_files import OpenFiles
from sskafka.storage.producers.snapshots import ProducerSnapshots
from sskafka.storage.producers.state import ProducerState
from sskafka.storage.segment import LOG_SUFFIX, RELATIVE_OFFSET_MAX, Segment, file_stem
from sskafka.storage.segment_swap import SWAP_SUFFIX, offer_swap, rename_segment
from sskafka.storage.segments import Segments
from sskafka.storage.transactions.marker import maybe_read_marker


class LogTail:
    __slots__ = (
        "_are_names_unsynced",
        "_believed_synced_before",
        "_config",
        "_directory",
        "_has_unsynced_names",
        "_log_directory",
        "_on_roll",
        "_open_files",
        "_producers",
        "_segment_bytes",
        "_segment_ms",
        "_segments",
        "_snapshots",
        "_unsynced",
    )

    def __init__(
        self,
        directory: str,
        log_directory: LogDirHealth,
        segments: Segments,
        producers: ProducerState,
        snapshots: ProducerSnapshots,
        open_files: OpenFiles,
        on_roll: Callable[[], None],
        has_new_segment: bool,
    ) -> None:
        """`on_roll` is called for every full segment, which should be synced soon."""
        self._directory = directory
        self._log_directory = log_directory
        self._segments = segments
        self._producers = producers
        self._snapshots = snapshots
        self._open_files = open_files
        self._on_roll: Callable[[], None] | None = on_roll
        self._unsynced: list[Segment] = []  # closed, but possibly not on disk yet
        self._has_unsynced_names = has_new_segment
        self._are_names_unsynced = False  # to the disk
        self._believed_synced_before = -1

    def configure(self, config: LogConfig, segment_ms: int) -> None:
        """Apply settings. `segment_ms` includes this partition's share of the jitter."""
        self._config = config
        self._segment_bytes = config.segment_bytes
        self._segment_ms = segment_ms

    def write(
        self, batches: Buffer, headers: list[BatchHeader], base_offset: int | None, end_offset: int, now_ms: int
    ) -> None:
        """Write the batches at once, then update everything that makes them visible. Flat, because every append runs
        this.

        The batches get offsets from `base_offset` on. With None they keep their own."""
        segment = self._segments.active
        if self._must_roll(segment, len(batches), headers[-1].max_timestamp, end_offset, now_ms):
            segment = self.roll(headers[0].base_offset if base_offset is None else base_offset, now_ms)
        try:
            if segment.is_index_flush_due:
                segment.flush_indexes()
            segment.file.write_at(batches, segment.size_bytes)
        except OSError as error:
            raise self._undo(segment, error) from error
        next_offset, position = base_offset, 0
        for header in headers:
            offset = header.base_offset if next_offset is None else next_offset
            size_bytes = header.length + LOG_OVERHEAD_BYTES
            last_offset = offset + header.last_offset_delta
            data_records = 0 if header.attributes & CONTROL else header.record_count
            segment.note_batch(last_offset, size_bytes, header.max_timestamp, data_records)
            if header.producer_id >= 0:
                self._note_producer(segment, batches, position, header, offset, now_ms)
            if next_offset is not None:
                next_offset = last_offset + 1
            position += size_bytes

    def parts(self, batches: Buffer, headers: list[BatchHeader]) -> Iterator[tuple[Buffer, list[BatchHeader]]]:
        """Split the batches into one part for each segment they need. The caller writes each part before it takes the
        next.

        A follower may fetch batches that fill several segments of its leader."""
        first = position = begin = 0
        used_bytes = self._segments.active.size_bytes
        for number, header in enumerate(headers):
            size_bytes = header.length + LOG_OVERHEAD_BYTES
            if used_bytes + size_bytes > self._segment_bytes and number > first:
                yield memoryview(batches)[begin:position], headers[first:number]
                first, begin, used_bytes = number, position, 0
            used_bytes += size_bytes
            position += size_bytes
        yield memoryview(batches)[begin:position], headers[first:]

    def _note_producer(
        self, segment: Segment, batches: Buffer, position: int, header: BatchHeader, base_offset: int, now_ms: int
    ) -> None:
        if not header.attributes & CONTROL:
            self._producers.add(header, base_offset, now_ms)
            return
        marker = maybe_read_marker(batches, header, position)
        if marker is not None:
            aborted = self._producers.end_transaction(header, marker, base_offset, now_ms)
            if aborted is not None:
                segment.transaction_index.add(aborted)

    def _undo(self, segment: Segment, error: OSError) -> StorageError:
        """Remove a failed write from the file. If that fails too, take the directory offline."""
        try:
            segment.undo_write()
        except OSError as cut_error:
            return self._log_directory.fail(cut_error)
        return self._log_directory.write_failed(error)

    def _must_roll(self, segment: Segment, size_bytes: int, max_timestamp: int, end_offset: int, now_ms: int) -> bool:
        if end_offset - 1 - segment.base_offset > RELATIVE_OFFSET_MAX:
            return True
        if segment.size_bytes == 0:
            return False
        if segment.size_bytes + size_bytes > self._segment_bytes or segment.is_index_full:
            return True
        if segment.first_timestamp >= 0:
            return max_timestamp - segment.first_timestamp > self._segment_ms
        return segment.is_older_than(self._segment_ms, now_ms)

    def is_roll_due(self, now_ms: int) -> bool:
        active = self._segments.active
        return active.size_bytes > 0 and active.is_older_than(self._segment_ms, now_ms)

    def roll(self, base_offset: int, now_ms: int) -> Segment:
        """Roll a new segment. Safe to repeat after an error: the log uses the new segment only when it is complete."""
        old = self._segments.active
        try:
            old.seal(sync=base_offset <= self._believed_synced_before)
            if base_offset <= self._believed_synced_before:
                old.file.sync()
            self._snapshots.take(self._producers, base_offset)
            segment = self.create_segment(base_offset, now_ms)
        except OSError as error:
            raise self._log_directory.write_failed(error) from error
        self._unsynced.append(old)
        self._segments.add(segment)
        if self._on_roll is not None:
            self._on_roll()
        return segment

    def abandon(self) -> None:
        """Close the files of segments, and forget the log, which refers to this tail."""
        self._open_files.close_all()
        self._on_roll = None

    def note_truncation(self, recovery_point: int) -> None:
        """Note a truncation of a log that was on disk up to `recovery_point`.

        The checkpoint may keep that recovery point for a while, and recovery would trust the segments below it. New
        segments below that point are therefore synced as soon as they are full."""
        self._believed_synced_before = max(self._believed_synced_before, recovery_point)

    def create_segment(self, base_offset: int, now_ms: int) -> Segment:
        disk = self._log_directory.disk
        self._has_unsynced_names = True
        return Segment.create(disk, self._directory, base_offset, self._config, self._open_files, now_ms)

    def set_aside(self, removed: list[Segment], sync: bool) -> list[str]:
        """Rename the files of removed segments in this order, so that a crash in between leaves no gap in the log.

        Return the new paths, which may be removed at any time. Without `sync` a crash may bring all of the files back.
        """
        paths: list[str] = []
        for segment in removed:
            paths += segment.mark_deleted()
            self._snapshots.remove(segment.base_offset)
        if removed and sync:
            self._log_directory.disk.sync_directory(self._directory)
        elif removed:
            self._has_unsynced_names = True
        self._unsynced = [segment for segment in self._unsynced if segment not in removed]
        return paths

    def swap_in(self, old: list[Segment], base_offsets: Sequence[int]) -> list[str]:
        """Replace the segments with the cleaned segments at `base_offsets`; segment_swap.py shows the steps.

        Return the paths of the old files, which are to be removed."""
        disk, ends = self._log_directory.disk, [*base_offsets[1:], self._ends_before(old[-1])]
        offer_swap(disk, self._directory, base_offsets)
        paths = [path for segment in old for path in segment.mark_deleted()]
        for base_offset in base_offsets:
            rename_segment(disk, self._directory, base_offset, SWAP_SUFFIX, "")
        new = [self._closed_segment(*place, old[0].created_ms) for place in zip(base_offsets, ends, strict=True)]
        self._segments.replace(old, new)
        for segment in old[1:]:
            self._snapshots.remove(segment.base_offset)
        self._unsynced = [segment for segment in self._unsynced if segment not in old]
        self._has_unsynced_names = True
        return paths

    def _ends_before(self, segment: Segment) -> int:
        following = self._segments.after(segment)
        assert following is not None, "the active segment is never cleaned"
        return following.base_offset

    def _closed_segment(self, base_offset: int, end_offset: int, created_ms: int) -> Segment:
        """Open a closed segment from its files."""
        disk, stem = self._log_directory.disk, os.path.join(self._directory, file_stem(base_offset))
        sizes = [_size_of(disk, stem + suffix) for suffix in (LOG_SUFFIX, offset_index.SUFFIX, time_index.SUFFIX)]
        segment = Segment(
            disk,
            self._directory,
            base_offset,
            self._config,
            self._open_files,
            size_bytes=sizes[0],
            index_bytes=sizes[1],
            time_index_bytes=sizes[2],
            created_ms=created_ms,
        )
        segment.recent.clear(end_offset - 1)
        return segment

    @property
    def awaits_sync(self) -> bool:
        """Whether a segment was created or closed since the last flush."""
        return self._has_unsynced_names or self._are_names_unsynced or bool(self._unsynced)

    def files_to_sync(self) -> list[Syncable]:
        """Return all files written since the last flush."""
        files: list[Syncable] = []
        for segment in self._unsynced:
            files += segment.all_files()
        files.append(self._segments.active.file)
        if self._has_unsynced_names or self._are_names_unsynced:
            files.append(DirectorySync(self._log_directory.disk, self._directory))
            self._has_unsynced_names = False
            self._are_names_unsynced = True
        return files

    def forget_synced(self, end_offset: int) -> None:
        """Note that everything below `end_offset` is on disk. The last segment may have grown or been closed since."""
        self._unsynced = [segment for segment in self._unsynced if self._reaches(segment, end_offset)]
        self._are_names_unsynced = False

    def _reaches(self, segment: Segment, offset: int) -> bool:
        following = self._segments.after(segment)
        return following is None or following.base_offset >= offset


def _size_of(disk: Disk, path: str) -> int:
    file = disk.open(path)
    try:
        return file.size()
    finally:
        file.close()
