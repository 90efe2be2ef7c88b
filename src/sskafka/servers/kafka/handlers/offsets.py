"""Questions about offsets: by time and by leader epoch; and DeleteRecords, which moves the first of them."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.replication.partition import Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.servers.kafka.authorization import Operation
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.servers.kafka.registry import Registry
from sskafka.servers.kafka.request import Request
from sskafka.wire.apis import ApiKey
from sskafka.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
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

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
READ_COMMITTED = 1
NOTHING = -1
TO_HIGH_WATERMARK = -1
FIRST_VERSION_WITH_EPOCH = 4

R = TypeVar("R")


class OffsetHandlers:
    def __init__(self, replicas: ReplicaManager, keep_log_starts: Callable[[], Awaitable[None]]) -> None:
        self._replicas = replicas
        self._keep_log_starts = keep_log_starts

    def register(self, registry: Registry) -> None:
        registry.add_message(ApiKey.LIST_OFFSETS, self.list_offsets)
        registry.add_message(ApiKey.OFFSET_FOR_LEADER_EPOCH, self.offset_for_leader_epoch)
        registry.add_message(ApiKey.DELETE_RECORDS, self.delete_records)

    def list_offsets(self, message: ListOffsetsRequest, request: Request) -> ListOffsetsResponse:
        committed = message.isolation_level == READ_COMMITTED

        def answer(topic: str, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
            index = asked.partition_index
            return self._on_partition(
                (request, Operation.DESCRIBE, topic, index),
                lambda partition: _find_offset(partition, asked, committed, request.version),
                lambda code: ListOffsetsPartitionResponse(index, code),
            )

        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(topic.name, [answer(topic.name, asked) for asked in topic.partitions])
                for topic in message.topics
            ]
        )

    def offset_for_leader_epoch(
        self, message: OffsetForLeaderEpochRequest, request: Request
    ) -> OffsetForLeaderEpochResponse:
        def answer(topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
            return self._on_partition(
                (request, Operation.DESCRIBE, topic, asked.partition),
                lambda partition: _find_epoch_end(partition, asked),
                lambda code: EpochEndOffset(code, asked.partition),
            )

        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(topic.topic, [answer(topic.topic, asked) for asked in topic.partitions])
                for topic in message.topics
            ]
        )

    async def delete_records(self, message: DeleteRecordsRequest, request: Request) -> DeleteRecordsResponse:
        """Answered when the new starts are on the disk: what is said to be deleted does not come back."""

        def answer(topic: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
            index = asked.partition_index
            return self._on_partition(
                (request, Operation.DELETE, topic, index),
                lambda partition: _delete_before(partition, asked),
                lambda code: DeleteRecordsPartitionResult(index, NOTHING, code),
            )

        response = DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(topic.name, [answer(topic.name, asked) for asked in topic.partitions])
                for topic in message.topics
            ]
        )
        await self._keep_log_starts()
        return response

    def _on_partition(
        self,
        target: tuple[Request, Operation, str, int],
        act: Callable[[Partition], R],
        refuse: Callable[[ErrorCode], R],
    ) -> R:
        """Each partition succeeds or fails for itself."""
        request, operation, topic, index = target
        if not request.may_on_topic(operation, topic):
            return refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        try:
            return act(self._replicas.find(topic, index))
        except Exception as error:
            return refuse(error_code_of(error)[0])


def _find_offset(
    partition: Partition, asked: ListOffsetsPartition, committed: bool, version: int
) -> ListOffsetsPartitionResponse:
    partition.check_leader_epoch(asked.current_leader_epoch)
    timestamp, offset = _look_up(partition, asked.timestamp, committed)
    has_epoch = offset != NOTHING and version >= FIRST_VERSION_WITH_EPOCH
    epoch = partition.log.epochs.epoch_of(offset) if has_epoch else NOTHING
    return ListOffsetsPartitionResponse(asked.partition_index, ErrorCode.NONE, timestamp, offset, epoch)


def _look_up(partition: Partition, timestamp: int, committed: bool) -> tuple[int, int]:
    """Timestamp and offset; a reader is told of nothing that it could not fetch."""
    log = partition.log
    limit = partition.last_stable_offset if committed else partition.high_watermark
    if timestamp == LATEST:
        return NOTHING, limit
    if timestamp in {EARLIEST, EARLIEST_LOCAL}:
        return NOTHING, log.log_start_offset
    if timestamp in {LATEST_TIERED, EARLIEST_PENDING_UPLOAD}:
        return NOTHING, NOTHING  # nothing is tiered
    found = log.max_timestamp_offset() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    if found is None or found.offset >= limit:
        return NOTHING, NOTHING
    return found.timestamp, found.offset


def _find_epoch_end(partition: Partition, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    partition.check_leader_epoch(asked.current_leader_epoch)
    epoch, end_offset = partition.log.end_offset_for_epoch(asked.leader_epoch)
    return EpochEndOffset(ErrorCode.NONE, asked.partition, epoch, end_offset)


def _delete_before(partition: Partition, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    if "delete" not in partition.log.config.cleanup_policy:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "records of a compacted topic are deleted by tombstones")
    partition.check_leader_epoch(NOTHING)
    offset = partition.high_watermark if asked.offset == TO_HIGH_WATERMARK else asked.offset
    if not 0 <= offset <= partition.high_watermark:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    partition.start_at(offset)
    return DeleteRecordsPartitionResult(asked.partition_index, partition.log.log_start_offset, ErrorCode.NONE)
