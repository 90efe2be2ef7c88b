"""Write the batches that replace a part of a log into new segments beside the old ones.

The files are named `<base offset>.*.cleaned` like the output of the cleaner: useless after a crash, and removed at the
next start. `Log.replace_part` swaps them in. Runs in a thread, one call at a time.
"""

from sskafka.model.buffers import Buffer
from sskafka.records.batch import BatchHeader, iter_headers, read_header
from sskafka.storage.disk import Disk
from sskafka.storage.log_config import LogConfig
from sskafka.storage.open_files import OpenFiles
from sskafka.storage.replaced_part import PartCheck, UnsureError
from sskafka.storage.segment import RELATIVE_OFFSET_MAX, Segment
from sskafka.storage.segment_swap import CLEANED_SUFFIX


class PartWriter:
    def __init__(
        self, disk: Disk, directory: str, config: LogConfig, base_offset: int, check: PartCheck, now_ms: int
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._config = LogConfig(
            segment_bytes=config.segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
        )
        self._next_base_offset = base_offset
        self._now_ms = now_ms
        self._segment: Segment | None = None
        self._pending: list[Buffer] = []
        self.check = check
        self.base_offsets: list[int] = []
        """Base offsets of the new segments. Each begins where the one before ends, so that together they cover the
        part."""

    def write(self, batches: Buffer) -> None:
        """Write the next batches of the other replica. Raise UnsureError or CorruptBatchError if they do not fit."""
        view = memoryview(batches)
        for position, header in iter_headers(view):
            batch = view[position : position + header.size_bytes]
            taken = self.check.take(header, batch)
            if taken is None:
                break
            segment = self._segment_for(header)
            self._put(segment, header, batch)
            if taken.aborted is not None:
                segment.transaction_index.add(taken.aborted)
            if self.check.is_done:
                break
        self._flush()

    def finish(self) -> None:
        """Close the last segment; everything is synced then."""
        filler = self.check.filler()
        if filler is not None:
            header = read_header(filler)
            self._put(self._segment_for(header), header, filler)
        self._close_segment()

    def _segment_for(self, header: BatchHeader) -> Segment:
        segment = self._segment
        if segment is not None and segment.size_bytes:
            is_full = segment.size_bytes + header.size_bytes > self._config.segment_bytes or segment.is_index_full
            if is_full or header.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
                self._close_segment()
        if self._segment is None:
            self._segment = Segment.create(
                self._disk,
                self._directory,
                self._next_base_offset,
                self._config,
                OpenFiles(),
                self._now_ms,
                CLEANED_SUFFIX,
            )
            self.base_offsets.append(self._next_base_offset)
        if header.last_offset - self._segment.base_offset > RELATIVE_OFFSET_MAX:
            raise UnsureError(f"its batch at offset {header.base_offset} follows a gap that no segment can span")
        return self._segment

    def _put(self, segment: Segment, header: BatchHeader, batch: Buffer) -> None:
        data_records = 0 if header.is_control else header.record_count
        segment.note_batch(header.last_offset, header.size_bytes, header.max_timestamp, data_records)
        self._pending.append(batch)
        self._next_base_offset = header.next_offset

    def _flush(self) -> None:
        """Write pending batches. The segment's size counts them already."""
        if self._pending:
            assert self._segment is not None
            data = b"".join(self._pending)
            self._segment.file.write_at(data, self._segment.size_bytes - len(data))
            self._pending.clear()

    def _close_segment(self) -> None:
        self._flush()
        segment, self._segment = self._segment, None
        if segment is not None:
            segment.seal(sync=True)
            segment.file.sync()
