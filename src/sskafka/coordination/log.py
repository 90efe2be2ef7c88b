"""The log of a coordinator's partition, as far as a context uses it, and the batches that are appended to it."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from sskafka.model.coordination import StateRecord
from sskafka.model.ids import ProducerIdAndEpoch
from sskafka.records.batch import HEADER_BYTES, NO_PRODUCER_ID
from sskafka.records.builder import NO_PRODUCER_EPOCH, NewRecord, build_batch
from sskafka.records.compression import Compression
from sskafka.replication.partition import ACKS_ALL, Partition
from sskafka.runtime.delayed_operation import OffsetWaiters
from sskafka.storage.file_slice import FileSlice

RECORD_OVERHEAD_BYTES = 32


class CoordinatorLog(Protocol):
    @property
    def is_leader(self) -> bool: ...

    @property
    def is_writable(self) -> bool:
        """Whether enough replicas are in sync for an append."""
        ...

    @property
    def leader_epoch(self) -> int: ...

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    @property
    def batch_bytes_max(self) -> int: ...

    def append(self, batch: bytearray, now_ms: int) -> int:
        """Append the batch. Return the offset after it, or raise the error that prevented the append."""
        ...

    def read(self, offset: int, max_bytes: int) -> list[FileSlice]:
        """Read batches from `offset` on, committed or not."""
        ...

    @property
    def committed_waiters(self) -> OffsetWaiters:
        """The operations that wait for the high watermark."""
        ...


class PartitionLog:
    """The log of a replica on this broker. Leadership may move at any time; then every append fails."""

    __slots__ = ("partition",)

    def __init__(self, partition: Partition) -> None:
        self.partition = partition

    @property
    def is_leader(self) -> bool:
        return self.partition.is_leader

    @property
    def is_writable(self) -> bool:
        return self.partition.has_enough_in_sync()

    @property
    def leader_epoch(self) -> int:
        return self.partition.leadership.leader_epoch

    @property
    def log_start_offset(self) -> int:
        return self.partition.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.partition.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self.partition.high_watermark

    @property
    def batch_bytes_max(self) -> int:
        return self.partition.config.max_message_bytes

    def append(self, batch: bytearray, now_ms: int) -> int:
        return self.partition.append(memoryview(batch), ACKS_ALL, now_ms, from_client=False).last_offset + 1

    def read(self, offset: int, max_bytes: int) -> list[FileSlice]:
        return self.partition.read_uncommitted(offset, max_bytes)

    @property
    def committed_waiters(self) -> OffsetWaiters:
        return self.partition.committed_waiters


class PendingBatch:
    """Records and effects of decisions that are not appended yet."""

    __slots__ = ("effects", "records", "size_bytes")

    def __init__(self) -> None:
        self.records: list[StateRecord] = []
        self.effects: list[object] = []
        self.size_bytes = 0

    def add(self, encoded: list[StateRecord], effects: Sequence[object], size_bytes: int) -> None:
        self.records += encoded
        self.effects += effects
        self.size_bytes += size_bytes


def batch_of(
    encoded: Sequence[StateRecord],
    now_ms: int,
    compression: Compression,
    producer: ProducerIdAndEpoch | None,
    is_marker: bool,
) -> bytearray:
    return build_batch(
        [NewRecord(record.key, record.value, timestamp=now_ms) for record in encoded],
        compression=compression,
        producer_id=producer.producer_id if producer else NO_PRODUCER_ID,
        producer_epoch=producer.producer_epoch if producer else NO_PRODUCER_EPOCH,
        transactional=producer is not None,
        control=is_marker,
    )


def split_records(records: Sequence[StateRecord], part_bytes: int) -> Iterator[slice]:
    """Yield at least one slice of the records, in order. None exceeds `part_bytes`, unless a single record does."""
    start, size_bytes = 0, 0
    for at, record in enumerate(records):
        size_bytes += _record_bytes(record)
        if at > start and size_bytes > part_bytes:
            yield slice(start, at)
            start, size_bytes = at, _record_bytes(record)
    yield slice(start, len(records))


def fits(records: Sequence[StateRecord], batch_bytes_max: int) -> bool:
    return HEADER_BYTES + size_of(records) <= batch_bytes_max


def size_of(records: Sequence[StateRecord]) -> int:
    """Return an upper bound of the records' bytes in a batch, without its header."""
    return sum(map(_record_bytes, records))


def _record_bytes(record: StateRecord) -> int:
    return len(record.key) + len(record.value or b"") + RECORD_OVERHEAD_BYTES
