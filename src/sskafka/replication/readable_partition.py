"""What can be read from a replica: its offsets, batches, timestamps and leader epochs, as far as a reader may see them.

A consumer reads up to the high watermark or the last stable offset, from the leader or, if it may, from any replica.
Readers that name an older or newer leader epoch are rejected, and a reader whose log has diverged learns where.
partition.py adds the role of the replica, and everything that changes it.
"""

from contextlib import AbstractContextManager
from typing import Final

from sskafka.model.ids import EpochEnd, TopicPartition, Uuid
from sskafka.partition.leader_state import Leadership, LeaderState
from sskafka.partition.truncation import UNDEFINED, diverging_epoch
from sskafka.replication.errors import FencedLeaderEpochError, NotLeaderOrFollowerError, UnknownLeaderEpochError
from sskafka.storage.append_checks import AppendChecks
from sskafka.storage.errors import OffsetOutOfRangeError
from sskafka.storage.file_slice import FileSlice
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.producers.state import ProducerState
from sskafka.storage.record_count import Uncounted
from sskafka.storage.timestamp_search import PartToSearch

UNKNOWN_EPOCH: Final = -1


class PartitionRead:
    """The result of a read. A class and no tuple, because compiled code creates its own classes faster."""

    __slots__ = (
        "aborted",
        "diverging_epoch",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "size_bytes",
        "slices",
    )

    def __init__(
        self,
        high_watermark: int,
        last_stable_offset: int,
        log_start_offset: int,
        slices: list[FileSlice],
        size_bytes: int,
        aborted: list[tuple[int, int]] | None,
        diverging_epoch: EpochEnd | None = None,
    ) -> None:
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.slices = slices
        self.size_bytes = size_bytes
        self.aborted = aborted
        """For read_committed: producer ids of the aborted transactions in the range, with their first offsets."""
        self.diverging_epoch = diverging_epoch
        """The reader's log has diverged from this one: the end of the last epoch that they may share."""


class ReadablePartition:
    __slots__ = ("leader", "leadership", "log", "topic_id", "topic_partition")

    def __init__(self, topic_partition: TopicPartition, topic_id: Uuid, log: Log, leadership: Leadership) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.leadership = leadership
        self.leader: LeaderState | None = None
        """Set while this broker leads the partition."""

    @property
    def log_start_offset(self) -> int:
        return self.log.offsets.log_start

    @property
    def last_stable_offset(self) -> int:
        return self.log.offsets.last_stable

    @property
    def high_watermark(self) -> int:
        return self.log.offsets.high_watermark

    @property
    def ready_offset(self) -> int:
        """Offset up to which the leader may acknowledge: everything below is as durable as the topic requires."""
        return self.log.ready_offset

    @property
    def log_end_offset(self) -> int:
        return self.log.offsets.log_end

    @property
    def producers(self) -> ProducerState:
        return self.log.producers

    @property
    def append_checks(self) -> AppendChecks:
        return self.log.append_checks

    @property
    def size_bytes(self) -> int:
        return self.log.size_bytes

    @property
    def segment_count(self) -> int:
        return len(self.log.segments)

    @property
    def synced_offset(self) -> int:
        """Everything below this offset is on the disk."""
        return self.log.recovery_point

    def check_online(self) -> None:
        """Raise StorageError if the log directory of this replica is offline."""
        self.log.log_directory.check_online()

    @property
    def is_in_service(self) -> bool:
        return self.log.is_in_service

    @property
    def lacks_room(self) -> bool:
        return self.log.lacks_room

    @property
    def config(self) -> LogConfig:
        return self.log.config

    @property
    def log_directory(self) -> LogDirHealth:
        return self.log.log_directory

    @property
    def is_leader(self) -> bool:
        return self.leader is not None

    # -- batches

    def read_uncommitted(self, offset: int, max_bytes: int) -> list[FileSlice]:
        """Return whole batches up to the log end, committed or not, for a coordinator that loads its state."""
        return self.log.read(offset, max_bytes, self.log_end_offset)

    def largest_timestamp(self) -> int:
        return self.log.largest_timestamp()

    def part_with_timestamp(self, timestamp: int, from_offset: int) -> PartToSearch | None:
        """Return the first part of the log that may have a record at `from_offset` or later of that time or later."""
        return self.log.part_with_timestamp(timestamp, from_offset)

    def known_record_count(self) -> int | None:
        """Return the number of data records, or None if there are `uncounted_batches`."""
        return self.log.known_record_count()

    def uncounted_batches(self) -> Uncounted | None:
        return self.log.uncounted_batches()

    def reading(self) -> AbstractContextManager[None]:
        """Report errors of the disk during a read to the log directory."""
        return self.log.log_directory.reading()

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        read_committed: bool = False,
        min_one: bool = True,
        current_leader_epoch: int = UNKNOWN_EPOCH,
        last_fetched_epoch: int = UNKNOWN_EPOCH,
        from_any_replica: bool = False,
    ) -> PartitionRead:
        """Return whole batches from `offset` on, up to what a consumer may see."""
        current_leader_epoch = max(current_leader_epoch, UNKNOWN_EPOCH)  # any negative epoch means "unknown"
        self.check_leader_epoch(current_leader_epoch, from_any_replica)
        if last_fetched_epoch != UNKNOWN_EPOCH:
            diverging = self._diverging(last_fetched_epoch, offset)
            if diverging is not None:
                return self._read_nothing(diverging)
        log, offsets = self.log, self.log.offsets
        up_to = offsets.last_stable if read_committed else offsets.high_watermark
        slices = log.read(offset, max_bytes, up_to, min_one)
        size_bytes = sum([part.length for part in slices])
        aborted = None
        if read_committed:
            found = log.aborted_transactions(offset, up_to) if slices else ()
            aborted = [(transaction.producer_id, transaction.first_offset) for transaction in found]
        return PartitionRead(
            offsets.high_watermark, offsets.last_stable, offsets.log_start, slices, size_bytes, aborted
        )

    def _read_nothing(self, diverging: EpochEnd) -> PartitionRead:
        offsets = self.log.offsets
        return PartitionRead(offsets.high_watermark, offsets.last_stable, offsets.log_start, [], 0, None, diverging)

    def check_leader_epoch(self, current_leader_epoch: int, from_any_replica: bool = False) -> None:
        """Compare the client's leader epoch with this broker's."""
        leadership = self.leadership
        if current_leader_epoch != UNKNOWN_EPOCH:
            if current_leader_epoch < leadership.leader_epoch:
                raise FencedLeaderEpochError(f"{self.topic_partition} is in epoch {leadership.leader_epoch}")
            if current_leader_epoch > leadership.leader_epoch:
                raise UnknownLeaderEpochError(f"{self.topic_partition} is in epoch {leadership.leader_epoch}")
        if self.leader is None and not from_any_replica:
            raise NotLeaderOrFollowerError(f"broker {leadership.leader_id} leads {self.topic_partition}")

    # -- epochs

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        """Return the largest epoch of this log up to `epoch`, and its end offset.

        A leader's own epoch begins at the log end offset of its election, even if nothing has been written in it."""
        leader, log = self.leader, self.log
        if leader is None:
            return log.end_offset_for_epoch(epoch)
        if epoch == UNKNOWN_EPOCH or epoch > leader.leader_epoch:
            return EpochEnd(UNDEFINED, UNDEFINED)
        if epoch == leader.leader_epoch:
            return EpochEnd(epoch, log.log_end_offset)
        latest = log.epochs.latest_epoch
        if epoch >= latest:
            return EpochEnd(latest if latest != UNKNOWN_EPOCH else epoch, leader.epoch_start_offset)
        return log.end_offset_for_epoch(epoch)

    def epoch_of(self, offset: int) -> int:
        return self.log.epochs.epoch_of(offset)

    def last_epoch(self) -> int:
        """The epoch of the last record, by which the leader detects that a follower's log has diverged."""
        offsets = self.log.offsets
        if offsets.log_end == offsets.log_start:
            return UNKNOWN_EPOCH
        return self.log.epochs.epoch_of(offsets.log_end - 1)

    def _diverging(self, last_fetched_epoch: int, fetch_offset: int) -> EpochEnd | None:
        """Return where the reader's log has diverged from this one, or None.

        The epoch at the end of a follower's log has not ended there for sure: the follower may only lag."""
        log = self.log
        known = self.end_offset_for_epoch(last_fetched_epoch)
        if known.end_offset == UNDEFINED or fetch_offset < log.log_start_offset:
            raise OffsetOutOfRangeError(fetch_offset, log.log_start_offset, log.log_end_offset)
        if self.leader is None and known.end_offset == log.log_end_offset:
            return None
        return diverging_epoch(last_fetched_epoch, fetch_offset, known)
