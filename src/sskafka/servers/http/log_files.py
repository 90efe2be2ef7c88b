"""The files of this broker's logs, for callers who may DESCRIBE the cluster, as for Kafka's DescribeLogDirs.

Files are addressed by topic, partition and base offset, never by a path. They are read in a thread of the HTTP process,
one request at a time, so neither the broker nor other requests wait for the disk.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from starlette.requests import Request

from sskafka.model.ids import TopicPartition
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.describe_check import check_may_describe
from sskafka.servers.http.problems import NOT_FOUND, Problem
from sskafka.storage.partition_files import PartitionFiles

T = TypeVar("T")


class LogFiles:
    def __init__(self, context: HttpContext) -> None:
        where = context.configuration.log_directories
        self._context = context
        self._turn = asyncio.Lock()
        self.partitions = PartitionFiles(where.data, where.metadata, where.partition_base)

    async def read(self, request: Request, partition: TopicPartition, read: Callable[[Path], T]) -> T:
        """Return what `read` returns for the partition's directory. Raise Problem if there is no such file."""
        await check_may_describe(self._context, request, "log files")
        async with self._turn:
            return await asyncio.to_thread(self._read, partition, read)

    def _read(self, partition: TopicPartition, read: Callable[[Path], T]) -> T:
        directory = self.partitions.directory(partition)
        if directory is None:
            node_id = self._context.configuration.node_id
            raise Problem(NOT_FOUND, f"broker {node_id} has no replica of {partition}; ask a broker that has one")
        try:
            return read(directory)
        except FileNotFoundError:
            raise Problem(NOT_FOUND, f"{partition} has no such segment any more") from None
