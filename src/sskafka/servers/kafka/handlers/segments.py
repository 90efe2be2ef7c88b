"""DescribeSegments: the files of a replica on this broker, for the console of another broker.

Files are addressed by topic, partition and base offset, never by a path. They are read in a thread, one request at a
time, so that no other request waits for the disk.
"""

import asyncio
from pathlib import Path
from typing import Any

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.servers.kafka.request import Request
from sskafka.storage.partition_files import BatchSummary, PartitionFiles, position_before, read_batches, read_index
from sskafka.wire.messages.describe_segments import (
    NOTHING,
    BatchDescription,
    DescribeSegmentsRequest,
    DescribeSegmentsResponse,
    IndexEntryDescription,
    SegmentDescription,
    SegmentPart,
)

PAGE_MAX = 500
SEGMENTS_MAX = 100_000


class SegmentHandler:
    def __init__(self, node_id: int, files: PartitionFiles) -> None:
        self._node_id = node_id
        self._files = files
        self._turn = asyncio.Lock()

    async def describe_segments(self, message: DescribeSegmentsRequest, request: Request) -> DescribeSegmentsResponse:
        async with self._turn:
            return await asyncio.to_thread(self._read, message)

    def _read(self, message: DescribeSegmentsRequest) -> DescribeSegmentsResponse:
        partition = TopicPartition(message.topic, message.partition)
        directory = self._files.directory(partition)
        if directory is None:
            text = f"broker {self._node_id} has no replica of {partition}"
            return DescribeSegmentsResponse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        try:
            return self._read_part(message, directory)
        except FileNotFoundError:
            text = f"{partition} has no such segment on broker {self._node_id} any more"
            return DescribeSegmentsResponse(ErrorCode.OFFSET_OUT_OF_RANGE, text)

    def _read_part(self, message: DescribeSegmentsRequest, directory: Path) -> DescribeSegmentsResponse:
        base_offset, limit = message.base_offset, min(max(message.limit, 1), PAGE_MAX)
        first = max(message.first, 0)
        response = DescribeSegmentsResponse(directory=str(directory))
        match message.part:
            case SegmentPart.SEGMENTS:
                found = self._files.segments(directory)[-SEGMENTS_MAX:]
                response.segments = [SegmentDescription(**segment._asdict()) for segment in found]
            case SegmentPart.BATCHES:
                start = first if message.offset < 0 else position_before(directory, base_offset, message.offset)
                page = read_batches(directory, base_offset, start, limit)
                response.batches = [_batch(batch) for batch in page.batches]
                response.next_position = NOTHING if page.next_position is None else page.next_position
                response.problem = page.problem
            case SegmentPart.INDEX:
                entries = read_index(directory, base_offset, first, limit)
                response.offset_index = [IndexEntryDescription(*entry) for entry in entries.offsets]
                response.time_index = [IndexEntryDescription(*entry) for entry in entries.times]
                response.has_more = entries.has_more
            case _:
                return DescribeSegmentsResponse(ErrorCode.INVALID_REQUEST, f"there is no part {message.part}")
        return response


def _batch(summary: BatchSummary) -> BatchDescription:
    values: dict[str, Any] = {name: NOTHING if one is None else one for name, one in summary._asdict().items()}
    return BatchDescription(**values)
