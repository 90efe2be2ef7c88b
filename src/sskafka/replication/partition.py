"""One replica on this broker: its log, its place in the cluster, and who waits for it.

A produce request appends here and may wait for the high watermark; a fetch reads here and may wait for data.
The high watermark is the smallest position among the in-sync replicas; the leader's own position is what its log
may acknowledge (`ready_offset`), so that with flush.messages=1 nothing is visible before it is on the disk.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from sskafka.model.counters import TopicCounters
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition, Uuid
from sskafka.partition.leadership import Leadership
from sskafka.partition.watermarks import Watermarks
from sskafka.replication.errors import (
    FencedLeaderEpochError,
    NotEnoughReplicasError,
    NotLeaderError,
    UnknownLeaderEpochError,
)
from sskafka.replication.offset_waiters import OffsetWaiters
from sskafka.storage.file_slice import FileSlice
from sskafka.storage.log import AppendInfo, Log

ACKS_ALL = -1
UNKNOWN_EPOCH = -1


class DataWaiter(Protocol):
    """A parked fetch that listens to this partition."""

    def data_arrived(self) -> None: ...

    def partition_changed(self) -> None: ...


class PartitionRead(NamedTuple):
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    slices: list[FileSlice]
    size_bytes: int
    aborted: list[tuple[int, int]] | None
    """Producer ids of the aborted transactions in reach, with the offsets at which these begin; for read_committed."""


class Partition:
    __slots__ = (
        "_first_unstable_offset",
        "_wake_soon",
        "broker_id",
        "committed_waiters",
        "counters",
        "data_waiters",
        "leadership",
        "log",
        "min_insync_replicas",
        "ready_waiters",
        "topic_id",
        "topic_partition",
        "watermarks",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        log: Log,
        leadership: Leadership,
        broker_id: int,
        high_watermark: int,
        min_insync_replicas: int,
        counters: TopicCounters,
        wake_soon: Callable[["Partition"], None],
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.leadership = leadership
        self.broker_id = broker_id
        self.watermarks = Watermarks(max(log.log_start_offset, min(high_watermark, log.log_end_offset)))
        self.min_insync_replicas = min_insync_replicas
        self.counters = counters
        self.committed_waiters = OffsetWaiters()
        self.ready_waiters = OffsetWaiters()
        self.data_waiters: dict[DataWaiter, None] = {}
        self._wake_soon = wake_soon
        self._first_unstable_offset = log.first_unstable_offset(self.high_watermark)
        log.on_ready = self._flushed
        self._maybe_advance_high_watermark()

    @property
    def high_watermark(self) -> int:
        return self.watermarks.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return self.watermarks.last_stable_offset(self._first_unstable_offset)

    @property
    def is_leader(self) -> bool:
        return self.leadership.leader_id == self.broker_id

    # -- writing

    def append(self, batches: memoryview, acks: int, now_ms: int) -> AppendInfo:
        leadership = self.leadership
        if leadership.leader_id != self.broker_id:
            raise NotLeaderError(f"broker {leadership.leader_id} leads {self.topic_partition}")
        if acks == ACKS_ALL and not self.has_enough_in_sync():
            raise NotEnoughReplicasError(f"{self.topic_partition} has {len(leadership.isr)} replicas in sync")
        info = self.log.append_as_leader(batches, leadership.leader_epoch, now_ms)
        self._maybe_advance_high_watermark()
        return info

    def has_enough_in_sync(self) -> bool:
        return self.leadership.has_enough_in_sync(self.min_insync_replicas)

    def _maybe_advance_high_watermark(self) -> None:
        log = self.log
        if not self.is_leader or not self.watermarks.advance(log.ready_offset, log.log_end_offset):
            return
        high_watermark = self.watermarks.high_watermark
        self._first_unstable_offset = log.first_unstable_offset(high_watermark)
        if self.committed_waiters:
            self.committed_waiters.release(high_watermark)
        if self.data_waiters:
            self._wake_soon(self)

    def _flushed(self) -> None:
        self.ready_waiters.release(self.log.ready_offset)
        self._maybe_advance_high_watermark()

    # -- reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        read_committed: bool = False,
        min_one: bool = True,
        current_leader_epoch: int = UNKNOWN_EPOCH,
    ) -> PartitionRead:
        """Whole batches from `offset` on, up to what the reader may see."""
        self.check_leader_epoch(current_leader_epoch)
        log = self.log
        high_watermark = self.watermarks.high_watermark
        last_stable = self.watermarks.last_stable_offset(self._first_unstable_offset)
        up_to = last_stable if read_committed else high_watermark
        slices = log.read(offset, max_bytes, up_to, min_one)
        size_bytes = sum([part.length for part in slices])
        aborted = None
        if read_committed:
            found = log.aborted_transactions(offset, up_to) if slices else ()
            aborted = [(transaction.producer_id, transaction.first_offset) for transaction in found]
        return PartitionRead(high_watermark, last_stable, log.log_start_offset, slices, size_bytes, aborted)

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Compare what the client believes with what this broker knows."""
        leadership = self.leadership
        if current_leader_epoch != UNKNOWN_EPOCH:
            if current_leader_epoch < leadership.leader_epoch:
                raise FencedLeaderEpochError(f"{self.topic_partition} is in epoch {leadership.leader_epoch}")
            if current_leader_epoch > leadership.leader_epoch:
                raise UnknownLeaderEpochError(f"{self.topic_partition} is in epoch {leadership.leader_epoch}")
        if leadership.leader_id != self.broker_id:
            raise NotLeaderError(f"broker {leadership.leader_id} leads {self.topic_partition}")

    # -- changes from the metadata

    def change_leadership(self, leadership: Leadership) -> None:
        was_leader = self.is_leader
        self.leadership = leadership
        if was_leader and not self.is_leader:
            self.release_all(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._maybe_advance_high_watermark()

    def release_all(self, error: ErrorCode) -> None:
        """Nobody may wait here any longer."""
        self.committed_waiters.fail(error)
        self.ready_waiters.fail(error)
        for waiter in list(self.data_waiters):
            waiter.partition_changed()

    def start_at(self, log_start_offset: int) -> None:
        """DeleteRecords: the log begins later from now on."""
        self.log.increment_log_start_offset(log_start_offset)
        self.watermarks.start_at(log_start_offset)
