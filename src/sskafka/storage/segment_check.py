"""Verify a segment after an unclean shutdown, batch by batch, then rebuild its indexes.

The CRC covers most of a batch. The other fields are checked against what else is known:

    base offset     never decreases and fits the segment; in a log that is not compacted it leaves no gap between
                    batches or before the next segment (whose file may have outlived this one's last writes)
    length, magic   by structure
    leader epoch    never decreases; matches leader-epoch-checkpoint for the offset, if that file exists

If a batch's offset jumps ahead and the next batch's does not, the first of the two is the invalid one.
"""

from collections.abc import Callable
from typing import NamedTuple

from sskafka.model.buffers import Buffer
from sskafka.model.values import value
from sskafka.records.batch import BatchHeader, CorruptBatchError, crc_matches
from sskafka.storage.batch_walk import walk_batches, walk_headers
from sskafka.storage.leader_epochs import NO_EPOCH, LeaderEpochs
from sskafka.storage.segment import RELATIVE_OFFSET_MAX, Segment


@value
class Expectations:
    epochs: LeaderEpochs
    gapless_from: int | None  # from this offset on every batch begins where the previous one ended
    end_offset: int | None  # the base offset of the next segment


class UnexpectedEpochError(CorruptBatchError):
    """The leader epoch of a batch contradicts the leader-epoch-checkpoint."""


class CheckedSegment(NamedTuple):
    good_bytes: int
    end_offset: int  # of the valid batches
    problem: str | None  # what is wrong after them
    is_epoch_unexpected: bool = False  # the problem: the next batch contradicts the leader-epoch-checkpoint


def verify_segment(segment: Segment, expected: Expectations) -> CheckedSegment:
    """Return how much of the segment's file is valid. Changes nothing."""
    check = BatchCheck(segment.base_offset, expected)
    size_bytes = segment.file.size()
    try:
        for position, header, batch in walk_batches(segment.file, 0, size_bytes):
            check.check(position, header, batch)
        check.check_end()
    except CorruptBatchError as error:
        good_bytes = check.good_bytes
        problem = f"{segment!r} at byte {good_bytes}: {error}"
        return CheckedSegment(good_bytes, check.good_offset, problem, isinstance(error, UnexpectedEpochError))
    return CheckedSegment(size_bytes, check.good_offset, None)


def rebuild_segment(segment: Segment, good_bytes: int, visit: Callable[[Segment, int, BatchHeader], None]) -> None:
    """Truncate the file to its valid part, rebuild the indexes and pass each batch to `visit`."""
    segment.begin_rebuild(good_bytes)
    for position, header in walk_headers(segment.file, 0, good_bytes):
        data_records = 0 if header.is_control else header.record_count
        segment.note_batch(header.last_offset, header.size_bytes, header.max_timestamp, data_records)
        visit(segment, position, header)
    segment.flush_indexes()


class BatchCheck:
    __slots__ = (
        "_base_offset",
        "_epoch",
        "_expected",
        "_first_offset",
        "_jumped_at",
        "_next_offset",
        "good_bytes",
        "good_offset",
    )

    def __init__(self, base_offset: int, expected: Expectations) -> None:
        self._base_offset = base_offset
        self._next_offset = base_offset
        # A log may begin after the base offset of its first segment: at the start of its first epoch.
        self._first_offset = expected.epochs.entries[0][1] if expected.epochs else base_offset
        self._epoch = NO_EPOCH
        self._expected = expected
        # The position of the previous batch if it follows a gap, and the offset before the gap.
        self._jumped_at: tuple[int, int] | None = None
        self.good_bytes = 0
        self.good_offset = base_offset

    def check(self, position: int, header: BatchHeader, batch: Buffer) -> None:
        self.good_bytes, self.good_offset = position, self._next_offset
        self._check_offsets(header)
        self._check_epoch(header)
        if not crc_matches(batch, header):
            raise CorruptBatchError("the batch does not match its checksum")
        self._jumped_at = (position, self._next_offset) if header.base_offset > self._next_offset else None
        self._next_offset = header.next_offset
        self._epoch = header.leader_epoch
        self.good_bytes, self.good_offset = position + header.size_bytes, header.next_offset

    def skip_to(self, position: int, offset: int) -> None:
        """Continue after a bad batch, at the batch at `position`, which begins at `offset`."""
        self.good_bytes, self.good_offset = position, offset
        self._next_offset = offset
        self._jumped_at = None

    def check_end(self) -> None:
        end_offset = self._expected.end_offset
        if end_offset is not None and self._is_gap(end_offset):
            raise CorruptBatchError(f"it ends at {self._next_offset}, the next segment begins at {end_offset}")

    def _is_gap(self, offset: int) -> bool:
        gapless_from = self._expected.gapless_from
        expected_offset = max(self._next_offset, self._first_offset)
        return gapless_from is not None and offset > expected_offset >= gapless_from

    def _check_offsets(self, header: BatchHeader) -> None:
        base_offset, end_offset = header.base_offset, self._expected.end_offset
        if header.last_offset_delta < 0:
            raise CorruptBatchError(f"a last offset delta of {header.last_offset_delta}")
        if base_offset < self._next_offset:
            if self._jumped_at is not None:
                self.good_bytes, self.good_offset = self._jumped_at
            raise CorruptBatchError(f"offset {base_offset} follows {self._next_offset - 1}")
        if header.last_offset - self._base_offset > RELATIVE_OFFSET_MAX:
            raise CorruptBatchError(f"offset {header.last_offset} is too far from the segment's {self._base_offset}")
        if end_offset is not None and header.last_offset >= end_offset:
            raise CorruptBatchError(f"offset {header.last_offset} reaches the next segment's {end_offset}")
        if self._is_gap(base_offset):
            raise CorruptBatchError(f"offset {base_offset} instead of {self._next_offset}")

    def _check_epoch(self, header: BatchHeader) -> None:
        if header.leader_epoch < self._epoch:
            raise CorruptBatchError(f"leader epoch {header.leader_epoch} follows {self._epoch}")
        known = self._expected.epochs.epoch_of(header.base_offset)
        if known != NO_EPOCH and header.leader_epoch not in {known, NO_EPOCH}:
            raise UnexpectedEpochError(f"leader epoch {header.leader_epoch} where {known} wrote")
