"""Sources of segments: this process reads the files of its own broker, another broker reads its own.

Both need DESCRIBE on the cluster. Here it is checked for the caller; another broker checks it itself, because the
connection to it has the caller's principal.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from starlette.requests import Request

from sskafka.client.segments import RemoteSegments, ReplicaSegments
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.log_files import LogFiles
from sskafka.servers.http.problems import NOT_FOUND, UNAVAILABLE, Problem
from sskafka.storage.partition_files import BatchPage, IndexPage, position_before, read_batches, read_index


class SegmentSource(Protocol):
    async def segments(self, partition: TopicPartition) -> ReplicaSegments: ...

    async def batches(
        self, partition: TopicPartition, base_offset: int, position: int, offset: int | None, limit: int
    ) -> BatchPage: ...

    async def index(self, partition: TopicPartition, base_offset: int, first: int, limit: int) -> IndexPage: ...


class SegmentSources:
    def __init__(self, context: HttpContext) -> None:
        self._context = context
        self._files = LogFiles(context)

    @asynccontextmanager
    async def of(self, request: Request, broker: int | None) -> AsyncIterator[SegmentSource]:
        """Lend the segments of a broker; None: of this one. Raise Problem for a broker that is not there."""
        if broker is None or broker == self._context.configuration.node_id:
            yield _OwnSegments(self._files, request)
            return
        async with self._context.clients(request) as clients:
            if broker not in {one.node_id for one in await clients.cluster.brokers()}:
                raise Problem(NOT_FOUND, f"there is no live broker {broker}")
            try:
                yield RemoteSegments(clients.cluster, broker)
            except KafkaError as error:
                if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                raise Problem(NOT_FOUND, error.message or error.code.name) from None
            except TimeoutError:
                raise Problem(UNAVAILABLE, f"broker {broker} does not answer in time") from None


class _OwnSegments:
    def __init__(self, files: LogFiles, request: Request) -> None:
        self._files = files
        self._request = request

    async def segments(self, partition: TopicPartition) -> ReplicaSegments:
        def read(directory: Path) -> ReplicaSegments:
            return ReplicaSegments(str(directory), self._files.partitions.segments(directory))

        return await self._files.read(self._request, partition, read)

    async def batches(
        self, partition: TopicPartition, base_offset: int, position: int, offset: int | None, limit: int
    ) -> BatchPage:
        def read(directory: Path) -> BatchPage:
            start = position if offset is None else position_before(directory, base_offset, offset)
            return read_batches(directory, base_offset, start, limit)

        return await self._files.read(self._request, partition, read)

    async def index(self, partition: TopicPartition, base_offset: int, first: int, limit: int) -> IndexPage:
        read = partial(read_index, base_offset=base_offset, first=first, limit=limit)
        return await self._files.read(self._request, partition, read)
