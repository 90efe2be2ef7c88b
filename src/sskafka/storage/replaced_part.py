"""Decide which part of a compacted log is replaced by the batches of another replica, and check what the replica sends.

    log start            damage          end of the part          log end
        |--- taken from the other replica ---|--- kept: complete ---|

Every replica compacts its log by itself, so one may lack records that another still has. Batches of two logs that were
compacted differently must not be mixed around a damaged range:

    a record that the other replica still has      this log may have removed it together with the tombstone of its
                                                   key: taken alone, it would bring a deleted key back
    a tombstone that the other replica lacks       it may have been in the damaged range: older records of its key,
                                                   which this log still has, would come back

Therefore everything from the log start to the end of the part is taken from one replica, and the part ends where this
log is complete: from there on no record has been removed. Whatever the other replica has removed from the part because
of a later record is still superseded by that record, which is either in the part or in the complete rest.

The other replica may go on compacting while its batches are read. It removes a tombstone at the earliest
`delete.retention.ms` after it has removed the older records of the key, so a copy that takes less time than that has
the tombstone of every deleted record that it has.

A transaction may span the end of the part only if readers of this log would filter its batches in the part: it is
committed, or it is still open, or the transaction index of the segment with its marker says that it was aborted. Such
an entry may be missing after a recovery, if this log had removed the batches of the transaction before.

A filler, a batch without records, keeps the end offset of the part if the other replica has removed the last batch, as
the cleaner does at the end of a segment.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sskafka.model.buffers import Buffer
from sskafka.records.batch import (
    MAGIC,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatchError,
    crc_matches,
)
from sskafka.records.builder import frame
from sskafka.records.control import ControlType
from sskafka.storage.batch_walk import walk_headers
from sskafka.storage.disk import File
from sskafka.storage.leader_epochs import NO_EPOCH
from sskafka.storage.producers.state import ProducerState
from sskafka.storage.transactions.index import AbortedTxn
from sskafka.storage.transactions.marker import read_marker


class UnsureError(Exception):
    """The batches of the other replica do not fit this log. Nothing is replaced."""


class SpanningTransactionError(UnsureError):
    """A transaction crosses every offset at which the part could end, so readers might not filter its batches."""


class FirstMarker(NamedTuple):
    """The first marker of a producer in a segment."""

    offset: int
    is_abort: bool


class SegmentFacts(NamedTuple):
    base_offset: int
    is_complete: bool = False
    """No record has been removed from the segment."""
    markers: Mapping[int, FirstMarker] = {}
    """By producer. Known for complete segments only."""
    aborted: Sequence[AbortedTxn] = ()
    """The transaction index. Known for complete segments only."""


def read_facts(file: File, size_bytes: int, base_offset: int, end_offset: int) -> SegmentFacts:
    """Read the batch headers of a segment, without its transaction index."""
    next_offset = base_offset
    markers: dict[int, FirstMarker] = {}
    try:
        for position, header in walk_headers(file, 0, size_bytes):
            if header.base_offset != next_offset or header.record_count != header.last_offset_delta + 1:
                return SegmentFacts(base_offset)
            if header.is_control and header.producer_id >= 0 and header.producer_id not in markers:
                marker = read_marker(file.read_at(header.size_bytes, position), header)
                if marker is not None:
                    markers[header.producer_id] = FirstMarker(header.base_offset, marker.type is ControlType.ABORT)
            next_offset = header.next_offset
    except CorruptBatchError:
        return SegmentFacts(base_offset)
    return SegmentFacts(base_offset, next_offset == end_offset, markers)


def may_span(
    segments: Sequence[SegmentFacts],
    open_transactions: Mapping[int, int],
    end: int,
    producer_id: int,
    first_offset: int,
) -> bool:
    """Return whether a transaction with a batch at `first_offset` in the part may be open at `end`.

    `open_transactions`: the first offset of each transaction that is open in this log, by producer."""
    for segment in segments:
        marker = segment.markers.get(producer_id) if segment.base_offset >= end else None
        if marker is not None:
            entries = [one for one in segment.aborted if (one.producer_id, one.last_offset) == (producer_id, marker[0])]
            return not marker.is_abort or any(one.first_offset <= first_offset for one in entries)
    return open_transactions.get(producer_id, first_offset + 1) <= first_offset


def possible_ends(segments: Sequence[SegmentFacts], damaged_end: int, committed_end: int) -> list[int]:
    """Return the offsets at which the replaced part may end, in ascending order: before a segment from which on the
    log is complete, not before the end of the damage, and not in what is not committed."""
    ends = []
    for segment in reversed(segments[1:]):
        if not segment.is_complete or segment.base_offset < damaged_end:
            break
        if segment.base_offset <= committed_end:
            ends.append(segment.base_offset)
    return ends[::-1]


class Taken(NamedTuple):
    """A batch that belongs to the part."""

    aborted: AbortedTxn | None
    """The entry for the transaction index, if the batch is the marker of an aborted transaction."""


class PartCheck:
    """Takes the batches of the other replica, in order, until the part is complete."""

    def __init__(
        self,
        base_offset: int,
        log_start_offset: int,
        ends: Sequence[int],
        epoch_of: Callable[[int], int],
        may_span: Callable[[int, int, int], bool],
    ) -> None:
        """`base_offset`: of the first segment, which may begin before the log start. `ends`: see possible_ends.
        `may_span`: whether a transaction may be open at an end, see above."""
        self._base_offset = base_offset
        self._ends = list(ends)
        self._epoch_of = epoch_of
        self._may_span = may_span
        self._transactions = ProducerState()
        self._is_first = True
        self.next_offset = log_start_offset
        self.end_offset: int | None = None
        """The end of the part, None until it is known."""

    @property
    def is_done(self) -> bool:
        return self.end_offset is not None

    def take(self, header: BatchHeader, batch: Buffer) -> Taken | None:
        """Return None if the batch lies behind the part, which is complete then. Raise UnsureError if it does not
        fit."""
        assert not self.is_done
        self._check(header, batch)
        if self._ends_before(header.base_offset):
            return None
        if self._ends[0] < header.next_offset:
            raise UnsureError(f"its batch at offset {header.base_offset} reaches beyond offset {self._ends[0]}")
        aborted = self._note_transaction(header, batch)
        self.next_offset, self._is_first = header.next_offset, False
        self._ends_before(header.next_offset)
        return Taken(aborted)

    def _check(self, header: BatchHeader, batch: Buffer) -> None:
        offset = header.base_offset
        if not crc_matches(batch, header):
            raise UnsureError(f"its batch at offset {offset} is damaged, too")
        # The first batch may begin before the log start, but it must contain it or follow it.
        first_allowed = self._base_offset if self._is_first else self.next_offset
        if header.last_offset_delta < 0 or offset < first_allowed or header.last_offset < self.next_offset:
            raise UnsureError(f"its batch at offset {offset} does not follow offset {self.next_offset - 1}")
        known = self._epoch_of(offset)
        if known != NO_EPOCH and header.leader_epoch not in {known, NO_EPOCH}:
            raise UnsureError(f"its batch at offset {offset} is of leader epoch {header.leader_epoch}, not {known}")

    def _ends_before(self, offset: int) -> bool:
        """End the part at the first possible end up to `offset` that no transaction prevents, and return whether there
        is one."""
        while self._ends and self._ends[0] <= offset:
            end = self._ends.pop(0)
            if all(self._may_span(end, *one) for one in self._transactions.open_transactions.items()):
                self.end_offset = end
                return True
        if not self._ends:
            raise SpanningTransactionError("a transaction is open where the part could end")
        return False

    def _note_transaction(self, header: BatchHeader, batch: Buffer) -> AbortedTxn | None:
        if header.producer_id < 0:
            return None
        if not header.is_control:
            self._transactions.add(header, header.base_offset, NO_TIMESTAMP)
            return None
        try:
            marker = read_marker(batch, header) if header.record_count else None
        except CorruptBatchError as error:
            raise UnsureError(f"its marker at offset {header.base_offset} cannot be read: {error}") from error
        if marker is None:
            return None
        return self._transactions.end_transaction(header, marker, header.base_offset, NO_TIMESTAMP)

    def filler(self) -> bytearray | None:
        """Return the batch that extends the complete part to its end, None if its last batch ends there."""
        assert self.end_offset is not None, "the part is not complete yet"
        if self.next_offset >= self.end_offset:
            return None
        last_offset = self.end_offset - 1
        header = BatchHeader(
            base_offset=last_offset,
            length=0,
            leader_epoch=self._epoch_of(last_offset),
            magic=MAGIC,
            crc=0,
            attributes=0,
            last_offset_delta=0,
            base_timestamp=NO_TIMESTAMP,
            max_timestamp=NO_TIMESTAMP,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=-1,
            base_sequence=NO_SEQUENCE,
            record_count=0,
        )
        return frame(header, b"")
