"""ListOffsets (offsets by timestamp) and OffsetForLeaderEpoch."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from sskafka.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.records.batch import NO_TIMESTAMP
from sskafka.replication.partition import Partition
from sskafka.replication.readable_partition import UNKNOWN_EPOCH
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.serial_thread import SerialThread
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.servers.kafka.request import Request
from sskafka.storage.batch_count import SLICE_HEADERS
from sskafka.storage.timestamp_search import INLINE_HEADERS, TimestampedOffset
from sskafka.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from sskafka.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

T = TypeVar("T")

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
NEVER = 1 << 15
FIRST_VERSIONS_OF_SPECIAL_TIMESTAMPS = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
READ_COMMITTED = 1
ISOLATION_LEVELS = (0, READ_COMMITTED)
NOTHING = -1
FIRST_VERSION_WITH_EPOCH = 4
FIRST_VERSION_WITH_NOT_AVAILABLE = 5


class OffsetHandlers:
    def __init__(self, replicas: ReplicaManager, thread: SerialThread) -> None:
        self._replicas = replicas
        self._thread = thread

    async def list_offsets(self, message: ListOffsetsRequest, request: Request) -> ListOffsetsResponse:
        """A topic that is named more than once is answered once; a partition that is named more than once is refused,
        as by Apache Kafka."""
        if message.isolation_level not in ISOLATION_LEVELS:
            return _refused(message, ErrorCode.INVALID_REQUEST)
        committed = message.isolation_level == READ_COMMITTED
        may_see_all = message.replica_id >= 0  # a follower compares its log with the whole log of the leader

        async def answer(topic: str, requested: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
            index = requested.partition_index
            if not request.may_on_topic(AclOperation.DESCRIBE, topic):
                return ListOffsetsPartitionResponse(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            try:
                partition = self._replicas.find(topic, index)
                end_offset = _visible_end(partition, committed, may_see_all)
                return await self._find_offset(partition, requested, end_offset, request.version)
            except Exception as error:
                return ListOffsetsPartitionResponse(index, error_code_of(error)[0])

        async def answers(topic: str, partitions: list[ListOffsetsPartition]) -> ListOffsetsTopicResponse:
            by_index = {requested.partition_index: requested for requested in partitions}
            counts = Counter(requested.partition_index for requested in partitions)
            return ListOffsetsTopicResponse(
                topic,
                [
                    await answer(topic, requested)
                    if counts[index] == 1
                    else ListOffsetsPartitionResponse(index, ErrorCode.INVALID_REQUEST)
                    for index, requested in by_index.items()
                ],
            )

        by_topic: dict[str, list[ListOffsetsPartition]] = {}
        for topic in message.topics:
            by_topic.setdefault(topic.name, []).extend(topic.partitions)
        return ListOffsetsResponse(topics=[await answers(*item) for item in by_topic.items()])

    async def _find_offset(
        self, partition: Partition, requested: ListOffsetsPartition, end_offset: int, version: int
    ) -> ListOffsetsPartitionResponse:
        if requested.timestamp < 0 and version < FIRST_VERSIONS_OF_SPECIAL_TIMESTAMPS.get(requested.timestamp, NEVER):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        partition.check_leader_epoch(requested.current_leader_epoch)
        timestamp, offset = await self._find_offset_by_timestamp(partition, requested.timestamp, end_offset, version)
        has_epoch = offset != NOTHING and version >= FIRST_VERSION_WITH_EPOCH
        epoch = _epoch_of(partition, offset) if has_epoch else NOTHING
        return ListOffsetsPartitionResponse(requested.partition_index, ErrorCode.NONE, timestamp, offset, epoch)

    async def _find_offset_by_timestamp(
        self, partition: Partition, timestamp: int, end_offset: int, version: int
    ) -> tuple[int, int]:
        """Return timestamp and offset, never beyond what the client could fetch."""
        if timestamp in {EARLIEST, EARLIEST_LOCAL}:
            return NOTHING, partition.log_start_offset
        if timestamp in {LATEST_TIERED, EARLIEST_PENDING_UPLOAD}:
            return NOTHING, NOTHING  # there is no tiered storage
        if timestamp == LATEST:
            _check_end_is_known(partition, end_offset, version)
            return NOTHING, end_offset
        found = await self._find_timestamp(partition, timestamp)
        if found is None or found.offset >= end_offset:
            _check_end_is_known(partition, end_offset, version)
            return NOTHING, NOTHING
        return found.timestamp, found.offset

    async def _find_timestamp(self, partition: Partition, timestamp: int) -> TimestampedOffset | None:
        """Return the first record whose timestamp is `timestamp` or later.

        Usually some headers and a small batch have to be read. A thread reads more headers, and other batches."""
        await asyncio.sleep(0)  # a request may name thousands of partitions
        if timestamp == MAX_TIMESTAMP and (timestamp := partition.largest_timestamp()) == NO_TIMESTAMP:
            return None
        from_offset, is_first = partition.log_start_offset, True
        while (part := partition.part_with_timestamp(timestamp, from_offset)) is not None:
            if is_first:
                with partition.reading():
                    batch, next_offset = part.walk(INLINE_HEADERS)
            else:
                batch, next_offset = await self._in_thread(partition, part.walk_slice, SLICE_HEADERS)
            if batch is not None:
                if is_first and batch.is_cheap:
                    with partition.reading():
                        found = batch.search()
                else:
                    found = await self._in_thread(partition, batch.search_in_thread, batch.header.record_count)
                if found is not None:
                    return found
            from_offset, is_first = next_offset, False
        return None

    async def _in_thread(self, partition: Partition, read: Callable[[], T], cost: int) -> T:
        """Return what `read` returns. Raise if this broker has stopped leading the partition: what was read may have
        been truncated."""
        try:
            with partition.reading():
                return await self._thread.run(read, cost)
        finally:
            partition.check_leader_epoch(UNKNOWN_EPOCH)

    def offset_for_leader_epoch(
        self, message: OffsetForLeaderEpochRequest, request: Request
    ) -> OffsetForLeaderEpochResponse:
        is_node = request.may_see(ResourceType.CLUSTER, CLUSTER_NAME, AclOperation.CLUSTER_ACTION)

        def answer(topic: str, requested: OffsetForLeaderPartition) -> EpochEndOffset:
            if not is_node and not request.may_on_topic(AclOperation.DESCRIBE, topic):
                return EpochEndOffset(ErrorCode.TOPIC_AUTHORIZATION_FAILED, requested.partition)
            try:  # a partition that fails does not affect the others
                return _find_epoch_end(self._replicas.find(topic, requested.partition), requested)
            except Exception as error:
                return EpochEndOffset(error_code_of(error)[0], requested.partition)

        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic.topic, [answer(topic.topic, requested) for requested in topic.partitions]
                )
                for topic in message.topics
            ]
        )


def _refused(message: ListOffsetsRequest, error: ErrorCode) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                topic.name,
                [ListOffsetsPartitionResponse(requested.partition_index, error) for requested in topic.partitions],
            )
            for topic in message.topics
        ]
    )


def _visible_end(partition: Partition, committed: bool, may_see_all: bool) -> int:
    if may_see_all:
        return partition.log_end_offset
    return partition.last_stable_offset if committed else partition.high_watermark


def _epoch_of(partition: Partition, offset: int) -> int:
    """Return the epoch of the offset. At the end of an empty log it is the current leader epoch."""
    epoch = partition.epoch_of(offset)
    leader = partition.leader
    if epoch == NOTHING and leader is not None and offset == partition.log_end_offset:
        return leader.leader_epoch
    return epoch


def _check_end_is_known(partition: Partition, end_offset: int, version: int) -> None:
    """Raise OFFSET_NOT_AVAILABLE until the high watermark of a new leader has reached its own epoch.

    Before that, the leader does not know how much its predecessor had committed, and offsets could go back."""
    leader = partition.leader
    sees_all = end_offset == partition.log_end_offset
    if leader is not None and not sees_all and partition.high_watermark < leader.epoch_start_offset:
        is_known_to_client = version >= FIRST_VERSION_WITH_NOT_AVAILABLE
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE if is_known_to_client else ErrorCode.LEADER_NOT_AVAILABLE)


def _find_epoch_end(partition: Partition, requested: OffsetForLeaderPartition) -> EpochEndOffset:
    partition.check_leader_epoch(requested.current_leader_epoch)
    epoch, end_offset = partition.end_offset_for_epoch(requested.leader_epoch)
    return EpochEndOffset(ErrorCode.NONE, requested.partition, epoch, end_offset)
