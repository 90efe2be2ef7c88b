"""The log under a shard: one partition of an internal topic, as far as a shard needs it."""

from typing import Protocol

from sskafka.replication.partition import ACKS_ALL, Partition
from sskafka.runtime.delayed_operation import OffsetWaiters
from sskafka.storage.file_slice import FileSlice


class ShardLog(Protocol):
    @property
    def is_leader(self) -> bool: ...

    @property
    def is_writable(self) -> bool:
        """Whether enough replicas are in sync for an append to be promised."""
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
        """The offset behind the batch; raises what kept it from being written."""
        ...

    def read(self, offset: int, max_bytes: int) -> list[FileSlice]:
        """Whole batches from `offset` on, committed or not."""
        ...

    @property
    def committed_waiters(self) -> OffsetWaiters:
        """Who waits for the high watermark."""
        ...


class PartitionLog:
    """A replica on this broker. Leadership may go at any time; then every append fails."""

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
        return self.partition.log.read(offset, max_bytes, self.log_end_offset)

    @property
    def committed_waiters(self) -> OffsetWaiters:
        return self.partition.committed_waiters
