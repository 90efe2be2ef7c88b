"""DeleteRecords: logs begin later from now on, on every replica.

Answered when the new starts are on this broker's disk and every live follower's log begins no earlier, or when the
client's time is over: what is said to be deleted does not come back with another leader.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from sskafka.model.acl import Operation
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import INTERNAL_TOPICS
from sskafka.replication.partition import Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.servers.kafka.request import Request
from sskafka.storage.errors import StorageError
from sskafka.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

NOTHING = -1
TO_HIGH_WATERMARK = -1


class _Deletion(NamedTuple):
    """What became of one partition's part of the request."""

    partition_index: int
    error: ErrorCode
    partition: Partition | None = None
    offset: int = NOTHING

    def result(self) -> DeleteRecordsPartitionResult:
        low_watermark = self.partition.low_watermark if self.partition is not None else NOTHING
        return DeleteRecordsPartitionResult(self.partition_index, low_watermark, self.error)


class DeleteRecordsHandler:
    def __init__(self, replicas: ReplicaManager, keep_log_starts: Callable[[], Awaitable[None]]) -> None:
        self._replicas = replicas
        self._keep_log_starts = keep_log_starts

    async def delete_records(self, message: DeleteRecordsRequest, request: Request) -> DeleteRecordsResponse:
        deletions = [
            (topic.name, [self._delete(request, topic.name, asked) for asked in topic.partitions])
            for topic in message.topics
        ]
        kept = await self._kept()
        try:
            async with asyncio.timeout(max(message.timeout_ms, 0) / 1000):
                settled = [(name, [await _settled(one, kept) for one in parts]) for name, parts in deletions]
        except TimeoutError:
            settled = [(name, [_as_it_is(one, kept) for one in parts]) for name, parts in deletions]
        return DeleteRecordsResponse(
            topics=[DeleteRecordsTopicResult(name, [one.result() for one in parts]) for name, parts in settled]
        )

    def _delete(self, request: Request, topic: str, asked: DeleteRecordsPartition) -> _Deletion:
        """Each partition succeeds or fails for itself."""
        index = asked.partition_index
        if not request.may_on_topic(Operation.DELETE, topic):
            return _Deletion(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        try:
            partition = self._replicas.find(topic, index)
            if topic in INTERNAL_TOPICS:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"records of {topic} cannot be deleted")
            return _Deletion(index, ErrorCode.NONE, partition, _delete_before(partition, asked.offset))
        except Exception as error:
            return _Deletion(index, error_code_of(error)[0])

    async def _kept(self) -> ErrorCode:
        try:
            await self._keep_log_starts()
        except StorageError as error:
            return error_code_of(error)[0]
        return ErrorCode.NONE


def _delete_before(partition: Partition, asked_offset: int) -> int:
    """The offset at which the log begins now."""
    if "delete" not in partition.config.cleanup_policy:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "records of a compacted topic are deleted by tombstones")
    partition.check_leader_epoch(NOTHING)
    offset = partition.high_watermark if asked_offset == TO_HIGH_WATERMARK else asked_offset
    if not 0 <= offset <= partition.high_watermark:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    partition.start_at(offset)
    return offset


async def _settled(deletion: _Deletion, kept: ErrorCode) -> _Deletion:
    """Waits for the followers; `kept` says whether this broker's own part is on the disk."""
    partition = deletion.partition
    if partition is None:
        return deletion
    if kept is not ErrorCode.NONE:
        return _Deletion(deletion.partition_index, kept)
    if partition.low_watermark >= deletion.offset:
        return deletion
    told: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
    partition.log_start_waiters.add(deletion.offset, lambda error: None if told.done() else told.set_result(error))
    error = await told
    return deletion if error is ErrorCode.NONE else _Deletion(deletion.partition_index, error)


def _as_it_is(deletion: _Deletion, kept: ErrorCode) -> _Deletion:
    """The time is over: some followers may have been faster than others."""
    partition = deletion.partition
    if partition is None:
        return deletion
    if kept is not ErrorCode.NONE:
        return _Deletion(deletion.partition_index, kept)
    is_done = partition.low_watermark >= deletion.offset
    return deletion if is_done else _Deletion(deletion.partition_index, ErrorCode.REQUEST_TIMED_OUT)
