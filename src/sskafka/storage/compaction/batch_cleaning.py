"""Clean one batch: keep all of it, some of its records, its bare header, or nothing.

A record is kept when no later record has its key, as far as the keys have been read:

    first dirty offset                      end of the known keys
         |                                         |
    ---- clean ----|------------ dirty -----------|---- not read ----
    kept unless     kept if it is the last         kept
    its key is      record of its key: its
    known           bit is set

A tombstone is kept until its delete horizon passes. The first cleaning that keeps the tombstone writes the delete
horizon into the batch (KIP-534: the base timestamp of the batch is the delete horizon, and an attribute flag says so).
Markers of transactions without remaining batches expire the same way. A batch that loses all its records is kept as a
bare header in two cases: it is the last batch of a known producer, because it holds the sequence; or it is the last
batch of its segment, because it holds the end offset.

Offsets, epochs and sequences never change. The bytes of a record change only if the base timestamp of its batch does.
"""

from collections.abc import Mapping
from typing import NamedTuple

from sskafka.model.buffers import Buffer
from sskafka.model.values import structure
from sskafka.records.batch import (
    COMPRESSION_MASK,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatchError,
    crc_matches,
)
from sskafka.records.builder import frame
from sskafka.records.compression import codec_of, compress
from sskafka.records.record import payload
from sskafka.storage.compaction.cleaned_transaction_metadata import CleanedTransactionMetadata
from sskafka.storage.compaction.latest_offsets import NOT_FOUND, LatestOffsets
from sskafka.storage.compaction.record_spans import RecordSpan, record_spans, with_timestamp_delta


class LastOfProducer(NamedTuple):
    """The newest batch or marker that a partition remembers of a producer."""

    data_offset: int
    """-1: the producer has no data, only a marker."""
    epoch: int


class KeyKnowledge:
    """Which records are the last ones of their keys."""

    __slots__ = ("_bits", "_first_offset", "_latest", "end_offset")

    BITS_MAX_BYTES = 16 << 20

    def __init__(self, latest: LatestOffsets, first_offset: int, end_offset: int) -> None:
        """Mark the last records of the keys in `latest`, which holds every key of [first, end).

        One bit for each offset: keys in that range need no second lookup."""
        self.end_offset = end_offset
        self._latest = latest
        self._first_offset = first_offset
        self._bits: bytearray | None = None
        size_bytes = (end_offset - first_offset) // 8 + 1
        if size_bytes <= self.BITS_MAX_BYTES:
            # A batch that was read only in part may have keys beyond the end; their bits are never read.
            self._bits = bytearray(size_bytes)
            latest.mark(self._bits, first_offset, end_offset)

    def may_have_last(self, first_offset: int, last_offset: int) -> bool:
        """Return whether a batch with these offsets may contain such records. Most batches of a busy key do not."""
        if self._bits is None or first_offset < self._first_offset or last_offset >= self.end_offset:
            return True
        low, high = first_offset - self._first_offset, last_offset - self._first_offset
        found = int.from_bytes(self._bits[low >> 3 : (high >> 3) + 1], "little") >> (low & 7)
        return bool(found & ((1 << (high - low + 1)) - 1))

    def is_last(self, offset: int, key: bytes | None) -> bool:
        if offset >= self.end_offset:
            return True
        if key is None:
            return False
        if offset < self._first_offset:
            return self._latest.get(key) == NOT_FOUND
        if self._bits is None:
            return self._latest.get(key) <= offset
        bit = offset - self._first_offset
        return bool(self._bits[bit >> 3] >> (bit & 7) & 1)


@structure
class BatchCleaning:
    keys: KeyKnowledge
    transactions: CleanedTransactionMetadata
    last_of_producers: Mapping[int, LastOfProducer]
    now_ms: int
    delete_retention_ms: int

    def clean(self, batch: Buffer, header: BatchHeader, *, must_stay: bool) -> Buffer | None:
        """Return the cleaned batch, or None if nothing is left. With `must_stay` at least the bare header is kept."""
        if not crc_matches(batch, header):
            raise CorruptBatchError(f"the batch at offset {header.base_offset} does not match its checksum")
        left = self._left_of_marker(batch, header) if header.is_control else self._left_of_data(batch, header)
        if left is None and (must_stay or self._is_last_of_producer(header)):
            return _bare(header)
        return left

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self.last_of_producers.get(header.producer_id)
        if last is None:
            return False
        if last.data_offset >= 0:
            return header.last_offset == last.data_offset
        return header.is_control and header.producer_epoch == last.epoch

    def _left_of_marker(self, batch: Buffer, header: BatchHeader) -> Buffer | None:
        if not self.transactions.is_marker_void(batch, header):
            return batch
        if header.record_count == 0 or self._is_horizon_over(header):
            return None
        return batch if header.attributes & DELETE_HORIZON else self._with_horizon(batch, header)

    def _with_horizon(self, batch: Buffer, header: BatchHeader) -> Buffer:
        data = payload(batch, header)
        return self._rebuilt(data, header, list(record_spans(data, header.record_count)), is_horizon_due=True)

    def _left_of_data(self, batch: Buffer, header: BatchHeader) -> Buffer | None:
        if self.transactions.is_batch_void(header) or header.record_count == 0:
            return None
        if not self.keys.may_have_last(header.base_offset, header.last_offset):
            return None
        data = payload(batch, header)
        # Keys beyond the end were not read: an older record of such a key stays, and would be its last one again.
        keeps_tombstones = header.last_offset >= self.keys.end_offset or not self._is_horizon_over(header)
        base_offset, is_last = header.base_offset, self.keys.is_last
        kept = [
            span
            for span in record_spans(data, header.record_count)
            if (span.has_value or keeps_tombstones) and is_last(base_offset + span.offset_delta, span.key)
        ]
        if not kept:
            return None
        is_horizon_due = not header.attributes & DELETE_HORIZON and not all(span.has_value for span in kept)
        if len(kept) == header.record_count and not is_horizon_due:
            return batch
        return self._rebuilt(data, header, kept, is_horizon_due=is_horizon_due)

    def _is_horizon_over(self, header: BatchHeader) -> bool:
        return bool(header.attributes & DELETE_HORIZON) and header.base_timestamp <= self.now_ms

    def _rebuilt(self, data: bytes, header: BatchHeader, kept: list[RecordSpan], *, is_horizon_due: bool) -> Buffer:
        base, attributes = header.base_timestamp, header.attributes
        records = [data[span.start : span.end] for span in kept]
        if is_horizon_due:
            base, attributes = self.now_ms + self.delete_retention_ms, attributes | DELETE_HORIZON
            moved = header.base_timestamp - base
            records = [with_timestamp_delta(data, span, span.timestamp_delta + moved) for span in kept]
        max_timestamp = header.max_timestamp
        if not attributes & LOG_APPEND_TIME:
            max_timestamp = header.base_timestamp + max(span.timestamp_delta for span in kept)
        new = header._replace(
            attributes=attributes, base_timestamp=base, max_timestamp=max_timestamp, record_count=len(kept)
        )
        return frame(new, compress(codec_of(header.compression), b"".join(records)))


def _bare(header: BatchHeader) -> Buffer:
    """Return the batch without records. It keeps its offsets, epochs and sequence."""
    attributes = header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON)
    timestamp = header.max_timestamp if header.max_timestamp >= 0 else NO_TIMESTAMP
    return frame(
        header._replace(attributes=attributes, base_timestamp=timestamp, max_timestamp=timestamp, record_count=0), b""
    )
