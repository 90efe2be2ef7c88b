"""DeleteRecords: raise the log start offset of partitions on every replica.

The response is sent when the new log start offset is on this broker's disk and all live followers have applied it, or
when the request times out. Deleted records must not reappear when another replica becomes the leader.

A request with thousands of partitions is handled in slices, but not in pieces: one write of the log start offsets to
the disk is enough for all of them.
"""

import asyncio
from collections.abc import Awaitable, Callable

from sskafka.model.acl import AclOperation
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import INTERNAL_TOPICS
from sskafka.replication.partition import Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.delayed_operation import DelayedFuture
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
PARTITIONS_PER_TURN = 100


class _Deletion:
    """The result for one partition."""

    def __init__(self, index: int, error: ErrorCode, partition: Partition | None = None, offset: int = NOTHING) -> None:
        self.index = index
        self.error = error
        self.partition = partition
        self.offset = offset

    @property
    def is_followed(self) -> bool:
        return self.partition is not None and self.partition.low_watermark >= self.offset

    def result(self, kept: ErrorCode) -> DeleteRecordsPartitionResult:
        """`kept`: whether the new log start offset is on this broker's disk."""
        error = self.error or (kept if self.partition is not None else ErrorCode.NONE)
        if error or self.partition is None:
            return DeleteRecordsPartitionResult(self.index, NOTHING, error)
        return DeleteRecordsPartitionResult(self.index, self.partition.low_watermark, error)


class DeleteRecordsHandler:
    def __init__(self, replicas: ReplicaManager, sync_log_start_offsets: Callable[[], Awaitable[None]]) -> None:
        self._replicas = replicas
        self._keep_log_starts = sync_log_start_offsets

    async def delete_records(self, message: DeleteRecordsRequest, request: Request) -> DeleteRecordsResponse:
        turns = _Turns()
        deletions: list[tuple[str, list[_Deletion]]] = []
        for topic in message.topics:
            deletions.append((topic.name, []))
            for requested in topic.partitions:
                deletions[-1][1].append(self._delete(request, topic.name, requested))
                await turns.maybe_end()
        kept = await self._kept()
        if kept is ErrorCode.NONE:
            every = [one for _, parts in deletions for one in parts]
            await _followed(every, max(message.timeout_ms, 0), turns)
        response = DeleteRecordsResponse()
        for name, parts in deletions:
            response.topics.append(DeleteRecordsTopicResult(name, []))
            for one in parts:
                response.topics[-1].partitions.append(one.result(kept))
                await turns.maybe_end()
        return response

    def _delete(self, request: Request, topic: str, requested: DeleteRecordsPartition) -> _Deletion:
        """Delete in each partition; one that fails does not affect the others."""
        index = requested.partition_index
        if not request.may_on_topic(AclOperation.DELETE, topic):
            return _Deletion(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        try:
            partition = self._replicas.find(topic, index)
            if topic in INTERNAL_TOPICS:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"records of {topic} cannot be deleted")
            return _Deletion(index, ErrorCode.NONE, partition, _delete_before(partition, requested.offset))
        except Exception as error:
            return _Deletion(index, error_code_of(error)[0])

    async def _kept(self) -> ErrorCode:
        try:
            await self._keep_log_starts()
        except StorageError as error:
            return error_code_of(error)[0]
        return ErrorCode.NONE


def _delete_before(partition: Partition, requested_offset: int) -> int:
    """Return the new log start offset."""
    if "delete" not in partition.config.cleanup_policy:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "records of a compacted topic are deleted by tombstones")
    partition.check_leader_epoch(NOTHING)
    offset = partition.high_watermark if requested_offset == TO_HIGH_WATERMARK else requested_offset
    if not 0 <= offset <= partition.high_watermark:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    partition.start_at(offset)
    return offset


class _Turns:
    """Ends a turn of the event loop after every PARTITIONS_PER_TURN partitions."""

    def __init__(self) -> None:
        self._done = 0

    async def maybe_end(self) -> None:
        self._done += 1
        if not self._done % PARTITIONS_PER_TURN:
            await asyncio.sleep(0)


async def _followed(deletions: list[_Deletion], timeout_ms: int, turns: _Turns) -> None:
    """Wait for the followers. Set REQUEST_TIMED_OUT for partitions whose followers are too slow."""
    waiting: list[tuple[_Deletion, Partition]] = []
    for one in deletions:
        if one.partition is not None and not one.is_followed:
            waiting.append((one, one.partition))
        await turns.maybe_end()
    if not waiting:
        return
    delayed = DelayedFuture()
    delayed.begin(len(waiting))
    for number, (one, partition) in enumerate(waiting):
        delayed.wait_for(number, partition.log_start_waiters, one.offset)
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            await delayed.future
    except TimeoutError:
        delayed.cancel()
    for (one, _), outcome in zip(waiting, delayed.outcomes, strict=True):
        one.error = outcome
