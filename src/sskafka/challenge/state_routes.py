"""/api/v1/challenge: the log directory that a tester of the Kafka challenge has prepared, as its files are now.

Brokers serve this route only if the cluster id of their log directory is that of the challenge.
"""

import asyncio
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from sskafka.challenge.log_directory import FIRST_SEGMENT
from sskafka.model.ids import METADATA_TOPIC, TopicPartition, uuid_text
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.describe_check import check_may_describe
from sskafka.storage.disk import OsDisk
from sskafka.storage.errors import CorruptFileError
from sskafka.storage.partition_files import PartitionFiles, read_batches
from sskafka.storage.partition_metadata import read_topic_id

PARTITIONS_MAX = 500
BATCHES_MAX = 1_000


class ChallengePartition(BaseModel):
    topic: str
    partition: int
    topic_id: Annotated[str | None, Field(description="As partition.metadata has it; null without that file.")]
    size_bytes: int
    batches: Annotated[int, Field(description=f"In the first segment, at most {BATCHES_MAX} are counted.")]
    records: int
    first_offset: Annotated[int | None, Field(description="null: the log is empty.")]
    last_offset: int | None
    files: Annotated[list[str], Field(description="Names of all files in its directory.")]
    problem: Annotated[str | None, Field(description="Why the log cannot be read to its end.")]


class ChallengeState(BaseModel):
    directories: list[str]
    metadata: Annotated[ChallengePartition | None, Field(description="The metadata log; null if there is none.")]
    partitions: Annotated[list[ChallengePartition], Field(description="By name and number.")]
    left_out: Annotated[int, Field(description="Partitions that are not shown.")]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["inspection"])
    where = context.configuration.log_directories
    files = PartitionFiles(where.data, where.metadata, where.partition_base)
    turn = asyncio.Lock()

    @router.get("/challenge", summary="The log directory of the Kafka challenge, as its files are now")
    async def challenge(request: Request) -> ChallengeState:
        await check_may_describe(context, request, "log files")
        async with turn:
            return await asyncio.to_thread(_state, files, list(where.data))

    return router


def _state(files: PartitionFiles, directories: list[str]) -> ChallengeState:
    found = files.partitions()
    metadata = _partition(files, TopicPartition(METADATA_TOPIC, 0))
    shown = [_partition(files, partition) for partition in found[:PARTITIONS_MAX]]
    return ChallengeState(
        directories=directories,
        metadata=metadata,
        partitions=[one for one in shown if one is not None],
        left_out=max(0, len(found) - PARTITIONS_MAX),
    )


def _partition(files: PartitionFiles, partition: TopicPartition) -> ChallengePartition | None:
    """Return None for a partition that is gone by now."""
    directory = files.directory(partition)
    if directory is None:
        return None
    try:
        page = read_batches(directory, int(Path(FIRST_SEGMENT).stem), 0, BATCHES_MAX)
        names = sorted(path.name for path in directory.iterdir())
        size_bytes = (directory / FIRST_SEGMENT).stat().st_size
    except FileNotFoundError:
        return None
    return ChallengePartition(
        topic=partition.topic,
        partition=partition.partition,
        topic_id=_topic_id(directory),
        size_bytes=size_bytes,
        batches=len(page.batches),
        records=sum(batch.records for batch in page.batches),
        first_offset=page.batches[0].base_offset if page.batches else None,
        last_offset=page.batches[-1].last_offset if page.batches else None,
        files=names,
        problem=page.problem,
    )


def _topic_id(directory: Path) -> str | None:
    try:
        found = read_topic_id(OsDisk(), str(directory))
    except (OSError, CorruptFileError):
        return None
    return None if found is None else uuid_text(found)
