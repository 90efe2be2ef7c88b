"""Verify a segment that was written long ago, in small steps that a thread takes.

    SegmentScrub(log, segment)     on the event loop: notes what the segment is expected to hold now
    step(max_bytes)                in a thread: read and check some batches; `found` has what is wrong
    is_outdated(log)               on the event loop: the log was truncated or the segment replaced meanwhile

Batches are checked as recovery checks them (segment_check.py), except for gaps, which a compacted log has. After a bad
batch the check goes on at the next good one: where the length of the bad batch points, or else at an entry of the
offset index. The indexes of a closed segment without damage are compared with its batches (index_scrub.py). Reads leave
the page cache as they found it.
"""

import os
from typing import NamedTuple

from sskafka.model.buffers import Buffer
from sskafka.model.ids import TopicPartition
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
from sskafka.storage.disk import Disk, File, read_file, replace_file
from sskafka.storage.errors import CorruptFileError
from sskafka.storage.index_scrub import IndexScrub
from sskafka.storage.leader_epochs import LeaderEpochs
from sskafka.storage.log import Log
from sskafka.storage.segment import Segment
from sskafka.storage.segment_check import BatchCheck, Expectations, UnexpectedEpochError

PROGRESS_FILE = "scrub-progress"
_VERSION = "1"


class SegmentScrub:
    """`epochs`: the leader epochs to expect; those of the log if None."""

    def __init__(self, log: Log, segment: Segment, epochs: list[tuple[int, int]] | None = None) -> None:
        following = log.segments.after(segment)
        self.segment = segment
        self.found: list[Damage] = []
        self.position = 0
        self._truncations = log.truncations
        self._file = _Uncached(segment.file)
        self._size_bytes = segment.size_bytes
        self._end_offset = log.log_end_offset if following is None else following.base_offset
        self._indexed = _indexed_positions(segment)
        expected = LeaderEpochs(log.log_directory.disk, "", log.epochs.entries if epochs is None else epochs)
        self._check = BatchCheck(segment.base_offset, Expectations(expected, None, self._end_offset))
        self._indexes = None if following is None else IndexScrub(segment, log.config)
        self._unexpected: tuple[int, int] | None = None  # end offset and epoch of the last batch of another epoch
        self.are_epochs_wrong = False
        """Whether it is the leader-epoch-checkpoint that is damaged: two good batches in a row have the same epoch, and
        the file says another. Then the scrub has ended early and must be repeated with other epochs."""

    @property
    def wrong_indexes(self) -> list[str]:
        """The indexes that do not match the batches, when the scrub is done."""
        return [] if self._indexes is None or self.found else sorted(self._indexes.problems)

    def repair_indexes(self) -> None:
        """Replace the offset index and the time index. The transaction index cannot be computed from one segment."""
        assert self._indexes is not None
        self.segment.replace_indexes(self._indexes.offset_index, self._indexes.time_index)

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
                if self._indexes is not None:
                    self._indexes.batch(position, header, batch)
                self.position = position + header.size_bytes
                if self.position - start >= max_bytes:
                    break
            if self.is_done:
                self._check.check_end()
                if self._indexes is not None:
                    self._indexes.end()
        except UnexpectedEpochError as error:
            self._note_unexpected_epoch(str(error))
        except CorruptBatchError as error:
            self._note_damage(str(error))
        return self.position - start

    def _note_unexpected_epoch(self, problem: str) -> None:
        header, before = self._good_batch_at(self._check.good_bytes), self._unexpected
        if header is not None:
            self._unexpected = header.next_offset, header.leader_epoch
            if before == (header.base_offset, header.leader_epoch):
                self.are_epochs_wrong = True
                self.position = self._size_bytes
                return
        self._note_damage(problem)

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


def _indexed_positions(segment: Segment) -> list[int]:
    try:
        return sorted(position for _, position in segment.offset_index.entries())
    except CorruptFileError:
        return []


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


class ScrubProgress(NamedTuple):
    """The file `scrub-progress`: how far the verification of all logs has come, so that a restart continues it.

        1                  version of the format
        1763370000000      when the current round began, in milliseconds
        orders 3 4711      the last verified segment: topic, partition and base offset; missing between rounds

    The file is not synced: if it is lost, a round is repeated or postponed."""

    round_began_ms: int
    partition: TopicPartition | None = None
    """None between two rounds."""
    base_offset: int = -1

    def is_behind(self, partition: TopicPartition, base_offset: int) -> bool:
        """Return whether a segment is still to be verified in this round. Logs are verified in the order of names."""
        return self.partition is None or (self.partition, self.base_offset) < (partition, base_offset)


def read_scrub_progress(disk: Disk, directory: str) -> ScrubProgress | None:
    """Return the progress, or None if the file is missing or unreadable."""
    path = os.path.join(directory, PROGRESS_FILE)
    try:
        lines = bytes(read_file(disk, path)).decode().splitlines() if disk.exists(path) else []
        if lines[:1] != [_VERSION]:
            return None
        if len(lines) == 2:
            return ScrubProgress(int(lines[1]))
        topic, partition, base_offset = lines[2].rsplit(" ", 2)
        return ScrubProgress(int(lines[1]), TopicPartition(topic, int(partition)), int(base_offset))
    except (OSError, ValueError, IndexError):
        return None


def write_scrub_progress(disk: Disk, directory: str, progress: ScrubProgress) -> None:
    lines = [_VERSION, str(progress.round_began_ms)]
    if progress.partition is not None:
        lines.append(f"{progress.partition.topic} {progress.partition.partition} {progress.base_offset}")
    text = "".join(f"{line}\n" for line in lines)
    replace_file(disk, os.path.join(directory, PROGRESS_FILE), text.encode(), sync=False)
