"""Decode the records of a fetch response, and filter out those that the consumer must not see.

Filtered out are control batches, records below the position (a fetch into the middle of a batch returns the whole
batch), an incomplete batch at the end and, for read_committed, the records of aborted transactions. The broker lists
aborted transactions by producer id and first offset; the records of a transaction are skipped from its first offset up
to the producer's abort marker.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sskafka.model.buffers import Buffer
from sskafka.model.ids import TopicPartition
from sskafka.records.batch import (
    HEADER_BYTES,
    LOG_APPEND_TIME,
    BatchHeader,
    CorruptBatchError,
    check_structure,
    crc_matches,
    read_header,
    read_offset_and_size,
)
from sskafka.records.control import ControlType, read_control_type
from sskafka.records.record import Headers, decode_records


class ConsumedRecord(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    leader_epoch: int
    is_append_time: bool


class AbortedTransactions:
    """Tracks aborted transactions while batches are visited in offset order."""

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        """`aborted` holds pairs of first offset and producer id."""
        self._upcoming = sorted(aborted, reverse=True)
        self._open: set[int] = set()

    def is_aborted(self, buffer: Buffer, position: int, header: BatchHeader) -> bool:
        """Return whether the batch belongs to an aborted transaction. An abort marker ends the transaction."""
        while self._upcoming and self._upcoming[-1][0] <= header.last_offset:
            self._open.add(self._upcoming.pop()[1])
        if header.is_control:
            self._apply_marker(buffer, position, header)
        return header.is_transactional and header.producer_id in self._open

    def _apply_marker(self, buffer: Buffer, position: int, header: BatchHeader) -> None:
        for record in decode_records(buffer, header, position):
            if read_control_type(record.key) == ControlType.ABORT:
                self._open.discard(header.producer_id)


class CompletedFetch:
    """One partition of a fetch response, iterated once from front to back.

    `next_offset` is the offset of the next fetch: after everything read so far, including filtered records.
    """

    def __init__(
        self,
        partition: TopicPartition,
        records: Buffer,
        next_offset: int,
        *,
        aborted: Iterable[tuple[int, int]] = (),
        check_crcs: bool = True,
    ) -> None:
        self.partition = partition
        self.next_offset = next_offset
        self.last_epoch = -1
        self._buffer = records
        self._aborted = AbortedTransactions(aborted)
        self._check_crcs = check_crcs

    def __iter__(self) -> Iterator[ConsumedRecord]:
        for position, header in self._batches():
            self.last_epoch = header.leader_epoch
            if not (self._aborted.is_aborted(self._buffer, position, header) or header.is_control):
                yield from self._records(position, header)
            self.next_offset = max(self.next_offset, header.next_offset)

    def _batches(self) -> Iterator[tuple[int, BatchHeader]]:
        position, end = 0, len(self._buffer)
        while end - position >= HEADER_BYTES and position + read_offset_and_size(self._buffer, position)[1] <= end:
            header = read_header(self._buffer, position)
            self._check(position, header, end - position)
            if header.last_offset >= self.next_offset:
                yield position, header
            position += header.size_bytes

    def _check(self, position: int, header: BatchHeader, available_bytes: int) -> None:
        check_structure(header, available_bytes)
        if self._check_crcs and not crc_matches(self._buffer, header, position):
            raise CorruptBatchError(f"{self.partition}: the batch at offset {header.base_offset} has a wrong checksum")

    def _records(self, position: int, header: BatchHeader) -> Iterator[ConsumedRecord]:
        topic, partition = self.partition
        epoch, is_append_time = header.leader_epoch, bool(header.attributes & LOG_APPEND_TIME)
        for offset, timestamp, key, value, headers in decode_records(self._buffer, header, position):
            if offset >= self.next_offset:
                self.next_offset = offset + 1
                yield ConsumedRecord(topic, partition, offset, timestamp, key, value, headers, epoch, is_append_time)
