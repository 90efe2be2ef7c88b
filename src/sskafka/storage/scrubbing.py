"""Verify a segment that was written long ago, in small steps that a thread takes.

    SegmentScrub(log, segment)     on the event loop: notes what the segment is expected to hold now
    step(max_bytes)                in a thread: read and check some batches; `found` has what is wrong
    is_outdated(log)               on the event loop: the log was truncated or the segment replaced meanwhile

Batches are checked as recovery checks them (segment_check.py), except for gaps, which a compacted log has. After a bad
batch the check goes on at the next good one: where the length of the bad batch points, or else at an entry of the
offset index. Reads leave the page cache as they found it.
"""

from sskafka.model.buffers import Buffer
from sskafka.records.batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatchError,
    check_structure,
    crc_matches,
    read_header,
)
from sskafka.storage.batch_walk import walk_batches
from sskafka.storage.damage import Damage
from sskafka.storage.disk import File
from sskafka.storage.leader_epochs import LeaderEpochs
from sskafka.storage.log import Log
from sskafka.storage.segment import Segment
from sskafka.storage.segment_check import BatchCheck, Expectations


class SegmentScrub:
    def __init__(self, log: Log, segment: Segment) -> None:
        following = log.segments.after(segment)
        self.segment = segment
        self.found: list[Damage] = []
        self.position = 0
        self._truncations = log.truncations
        self._file = _Uncached(segment.file)
        self._size_bytes = segment.size_bytes
        self._end_offset = log.log_end_offset if following is None else following.base_offset
        self._indexed = sorted(position for _, position in segment.offset_index.entries())
        epochs = LeaderEpochs(log.log_directory.disk, "", list(log.epochs.entries))
        self._check = BatchCheck(segment.base_offset, Expectations(epochs, None, self._end_offset))

    @property
    def is_done(self) -> bool:
        return self.position >= self._size_bytes

    def is_outdated(self, log: Log) -> bool:
        return log.truncations != self._truncations or self.segment not in log.segments or not log.is_in_service

    def step(self, max_bytes: int) -> int:
        """Check about `max_bytes`, at least one batch. Return how many bytes were read."""
        start = self.position
        chunk_bytes = max(max_bytes, HEADER_BYTES)
        try:
            for position, header, batch in walk_batches(self._file, start, self._size_bytes, chunk_bytes):
                self._check.check(position, header, batch)
                self.position = position + header.size_bytes
                if self.position - start >= max_bytes:
                    break
            if self.is_done:
                self._check.check_end()
        except CorruptBatchError as error:
            self._note_damage(str(error))
        return self.position - start

    def _note_damage(self, problem: str) -> None:
        position, offset = self._check.good_bytes, self._check.good_offset
        end_position, end_offset = self._next_good(position, offset)
        self.position = end_position
        self._check.skip_to(end_position, end_offset)
        base_offset = self.segment.base_offset
        self.found.append(Damage(base_offset, position, end_position, offset, end_offset, problem))

    def _next_good(self, position: int, offset: int) -> tuple[int, int]:
        """Return position and offset of the next good batch, or the end of the segment."""
        for candidate in self._candidates(position):
            header = self._good_batch_at(candidate)
            if header is not None and offset < header.base_offset < self._end_offset:
                return candidate, header.base_offset
        return self._size_bytes, self._end_offset

    def _candidates(self, position: int) -> list[int]:
        after = [indexed for indexed in self._indexed if indexed > position]
        header = _header_in(self._file.read_at(HEADER_BYTES, position), self._size_bytes - position)
        return after if header is None else [position + header.size_bytes, *after]

    def _good_batch_at(self, position: int) -> BatchHeader | None:
        available_bytes = self._size_bytes - position
        header = _header_in(self._file.read_at(HEADER_BYTES, position), available_bytes)
        if header is None:
            return None
        batch = self._file.read_at(header.size_bytes, position)
        return header if len(batch) == header.size_bytes and crc_matches(batch, header) else None


def _header_in(data: Buffer, available_bytes: int) -> BatchHeader | None:
    if len(data) < HEADER_BYTES:
        return None
    try:
        header = read_header(data)
        check_structure(header, available_bytes)
    except CorruptBatchError:
        return None
    return header


class _Uncached:
    """A file whose reads bring nothing into the page cache that was not there before."""

    def __init__(self, file: File) -> None:
        self._file = file

    def read_at(self, size: int, position: int) -> Buffer:
        return self._file.read_once(size, position)
