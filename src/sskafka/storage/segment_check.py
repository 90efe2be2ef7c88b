"""Verifying a segment after an unclean stop, batch by batch, and making its indexes anew on the way.

The CRC covers most of a batch. What it leaves out is checked against what else is known:

    base offset     never goes back, fits the segment; where the log was written by a leader without compaction,
                    also leaves no gap
    length, magic   by structure
    leader epoch    never goes back; is the one that leader-epoch-checkpoint has for the offset, if that file is there
"""

from collections.abc import Callable
from dataclasses import dataclass

from sskafka.model.buffers import Buffer
from sskafka.records.batch import BatchHeader, CorruptBatchError, crc_matches
from sskafka.storage.batch_walk import walk_batches
from sskafka.storage.leader_epochs import NO_EPOCH, LeaderEpochs
from sskafka.storage.segment import RELATIVE_OFFSET_MAX, Segment


@dataclass(frozen=True, slots=True)
class Expectations:
    epochs: LeaderEpochs
    gapless_from: int | None  # from this offset on every batch begins where the one before it ended
    end_offset: int | None  # the base offset of the next segment


def check_segment(
    segment: Segment, expected: Expectations, visit: Callable[[Segment, int, BatchHeader], None]
) -> str | None:
    """Why the segment was cut, None when it is whole. Every good batch is indexed and visited."""
    size_bytes = segment.begin_rebuild()
    check = _BatchCheck(segment.base_offset, expected)
    problem = None
    try:
        for position, header, batch in walk_batches(segment.file, 0, size_bytes):
            check.check(header, batch)
            segment.note_batch(header.last_offset, header.size_bytes, header.max_timestamp)
            if not header.is_control and segment.data_records is not None:
                segment.data_records += max(header.record_count, 0)
            visit(segment, position, header)
    except CorruptBatchError as error:
        problem = f"{segment!r} at byte {segment.size_bytes}: {error}"
        segment.undo_write()
    segment.flush_indexes()
    return problem


class _BatchCheck:
    __slots__ = ("_base_offset", "_epoch", "_expected", "_next_offset")

    def __init__(self, base_offset: int, expected: Expectations) -> None:
        self._base_offset = base_offset
        self._next_offset = base_offset
        self._epoch = NO_EPOCH
        self._expected = expected

    def check(self, header: BatchHeader, batch: Buffer) -> None:
        self._check_offsets(header)
        self._check_epoch(header)
        if not crc_matches(batch, header):
            raise CorruptBatchError("the batch does not match its checksum")
        self._next_offset = header.next_offset
        self._epoch = header.leader_epoch

    def _check_offsets(self, header: BatchHeader) -> None:
        base_offset, expected = header.base_offset, self._expected
        if header.last_offset_delta < 0:
            raise CorruptBatchError(f"a last offset delta of {header.last_offset_delta}")
        if base_offset < self._next_offset:
            raise CorruptBatchError(f"offset {base_offset} follows {self._next_offset - 1}")
        if header.last_offset - self._base_offset > RELATIVE_OFFSET_MAX:
            raise CorruptBatchError(f"offset {header.last_offset} is too far from the segment's {self._base_offset}")
        if expected.end_offset is not None and header.last_offset >= expected.end_offset:
            raise CorruptBatchError(f"offset {header.last_offset} reaches the next segment's {expected.end_offset}")
        if expected.gapless_from is not None and base_offset != self._next_offset >= expected.gapless_from:
            raise CorruptBatchError(f"offset {base_offset} instead of {self._next_offset}")

    def _check_epoch(self, header: BatchHeader) -> None:
        if header.leader_epoch < self._epoch:
            raise CorruptBatchError(f"leader epoch {header.leader_epoch} follows {self._epoch}")
        known = self._expected.epochs.epoch_of(header.base_offset)
        if known != NO_EPOCH and header.leader_epoch not in {known, NO_EPOCH}:
            raise CorruptBatchError(f"leader epoch {header.leader_epoch} where {known} wrote")
