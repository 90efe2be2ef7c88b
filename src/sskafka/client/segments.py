"""The files of a replica on any broker, as DescribeSegments returns them."""

import asyncio
from typing import NamedTuple

from sskafka.client.cluster import Cluster
from sskafka.client.errors import raise_for
from sskafka.model.ids import TopicPartition
from sskafka.storage.partition_files import BatchPage, BatchSummary, IndexPage, SegmentFile
from sskafka.wire.messages.describe_segments import (
    NOTHING,
    BatchDescription,
    DescribeSegmentsRequest,
    DescribeSegmentsResponse,
    SegmentPart,
)

ANSWER_TIMEOUT_S = 10.0


class ReplicaSegments(NamedTuple):
    directory: str
    segments: list[SegmentFile]
    """Oldest first."""


class RemoteSegments:
    """Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION without a replica, OFFSET_OUT_OF_RANGE without that segment."""

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self._cluster = cluster
        self._node_id = node_id

    async def segments(self, partition: TopicPartition) -> ReplicaSegments:
        response = await self._ask(partition, SegmentPart.SEGMENTS)
        found = [
            SegmentFile(*(getattr(segment, name) for name in SegmentFile._fields)) for segment in response.segments
        ]
        return ReplicaSegments(response.directory, found)

    async def batches(
        self, partition: TopicPartition, base_offset: int, position: int, offset: int | None, limit: int
    ) -> BatchPage:
        wanted = NOTHING if offset is None else offset
        response = await self._ask(partition, SegmentPart.BATCHES, base_offset, position, wanted, limit)
        following = None if response.next_position == NOTHING else response.next_position
        return BatchPage([_summary(batch) for batch in response.batches], following, response.problem)

    async def index(self, partition: TopicPartition, base_offset: int, first: int, limit: int) -> IndexPage:
        response = await self._ask(partition, SegmentPart.INDEX, base_offset, first, NOTHING, limit)
        return IndexPage(
            [(entry.key, entry.value) for entry in response.offset_index],
            [(entry.key, entry.value) for entry in response.time_index],
            response.has_more,
        )

    async def _ask(
        self,
        partition: TopicPartition,
        part: SegmentPart,
        base_offset: int = 0,
        first: int = 0,
        offset: int = NOTHING,
        limit: int = 0,
    ) -> DescribeSegmentsResponse:
        request = DescribeSegmentsRequest(partition.topic, partition.partition, part, base_offset, first, offset, limit)
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            connection = await self._cluster.connection_to(self._node_id)
            response = await connection.request(request, DescribeSegmentsResponse)
        raise_for(response.error_code, response.error_message or f"the log files of broker {self._node_id}")
        return response


_MAY_BE_ABSENT = frozenset({"leader_epoch", "producer_id", "producer_epoch", "base_sequence"})


def _summary(batch: BatchDescription) -> BatchSummary:
    values = {name: getattr(batch, name) for name in BatchSummary._fields}
    absent = {name: None for name in _MAY_BE_ABSENT if values[name] == NOTHING}
    return BatchSummary(**(values | absent))
