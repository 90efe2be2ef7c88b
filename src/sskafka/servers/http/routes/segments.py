"""The segments of a partition on any broker: files, batches and index entries. Contents of records are not shown."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field

from sskafka.model.ids import TopicPartition
from sskafka.servers.http.context import HttpContext, at_most
from sskafka.servers.http.problems import NOT_FOUND, documented
from sskafka.servers.http.routes.paging import Name
from sskafka.servers.http.routes.records import PartitionNumber
from sskafka.servers.http.segment_sources import SegmentSources

PAGE_MAX = 500
SEGMENTS_MAX = 1_000

BaseOffset = Annotated[int, Path(ge=0, le=2**63 - 1, description="The offset in the name of the segment's file.")]
Limit = Annotated[int, Query(ge=1, description=f"At most {PAGE_MAX}."), at_most(PAGE_MAX)]


class Segment(BaseModel):
    base_offset: int
    size_bytes: int
    modified_ms: Annotated[int, Field(description="When its file was last written.")]
    offset_index_entries: Annotated[int, Field(description="On disk; the last segment may have more in memory.")]
    time_index_entries: int
    transaction_index_bytes: int
    is_active: Annotated[bool, Field(description="Whether the broker appends to it.")]


class Segments(BaseModel):
    broker_id: int
    directory: str
    segments: Annotated[list[Segment], Field(description="Newest first.")]
    left_out: Annotated[int, Field(description="Older segments that are not shown.")]


class Batch(BaseModel):
    position: Annotated[int, Field(description="Byte of the file where it begins.")]
    size_bytes: int
    base_offset: int
    last_offset: int
    records: int
    max_timestamp_ms: int
    compression: str
    magic: int
    leader_epoch: int | None
    producer_id: Annotated[int | None, Field(description="null: its producer is not idempotent.")]
    producer_epoch: int | None
    base_sequence: int | None
    is_transactional: bool
    is_control: bool
    is_valid: Annotated[bool, Field(description="Whether the checksum is right.")]


class Batches(BaseModel):
    batches: list[Batch]
    next_position: Annotated[int | None, Field(description="`position` of the next page; null on the last page.")]
    problem: Annotated[str | None, Field(description="Why the file cannot be read from there on.")]


class OffsetEntry(BaseModel):
    offset: int
    position: int


class TimeEntry(BaseModel):
    timestamp_ms: int
    offset: int


class IndexEntries(BaseModel):
    offsets: list[OffsetEntry]
    times: list[TimeEntry]
    next_entry: Annotated[int | None, Field(description="`first` of the next page; null on the last page.")]


Broker = Annotated[
    int | None,
    Query(ge=0, le=2**31 - 1, description="The broker whose replica is shown; by default the one that answers."),
]


def routes(context: HttpContext) -> APIRouter:
    missing = documented({NOT_FOUND: "The broker has no such replica or segment, or there is no such broker."})
    prefix = "/api/v1/topics/{topic_name}/partitions/{partition}/segments"
    router = APIRouter(prefix=prefix, tags=["inspection"], responses=missing)
    sources = SegmentSources(context)

    @router.get("", summary="The segments of a partition on a broker, newest first")
    async def segments(
        topic_name: Name, partition: PartitionNumber, request: Request, broker: Broker = None
    ) -> Segments:
        async with sources.of(request, broker) as source:
            directory, found = await source.segments(TopicPartition(topic_name, partition))
        newest = [Segment(**one._asdict(), is_active=one is found[-1]) for one in reversed(found)]
        return Segments(
            broker_id=context.configuration.node_id if broker is None else broker,
            directory=directory,
            segments=newest[:SEGMENTS_MAX],
            left_out=max(0, len(newest) - SEGMENTS_MAX),
        )

    @router.get("/{base_offset}/batches", summary="The batches of a segment")
    async def batches(
        topic_name: Name,
        partition: PartitionNumber,
        base_offset: BaseOffset,
        request: Request,
        broker: Broker = None,
        position: Annotated[int, Query(ge=0, le=2**63 - 1, description="`next_position` of the page before.")] = 0,
        offset: Annotated[
            int | None,
            Query(ge=0, le=2**63 - 1, description="Begin at the last index entry before this offset, instead."),
        ] = None,
        limit: Limit = 100,
    ) -> Batches:
        async with sources.of(request, broker) as source:
            at = TopicPartition(topic_name, partition)
            page = await source.batches(at, base_offset, position, offset, limit)
        shown = [Batch(**batch._asdict()) for batch in page.batches]
        return Batches(batches=shown, next_position=page.next_position, problem=page.problem)

    @router.get("/{base_offset}/index", summary="The index entries of a segment that are on disk")
    async def index(
        topic_name: Name,
        partition: PartitionNumber,
        base_offset: BaseOffset,
        request: Request,
        broker: Broker = None,
        first: Annotated[int, Query(ge=0, le=2**31, description="Number of the first entry.")] = 0,
        limit: Limit = 100,
    ) -> IndexEntries:
        async with sources.of(request, broker) as source:
            page = await source.index(TopicPartition(topic_name, partition), base_offset, first, limit)
        return IndexEntries(
            offsets=[OffsetEntry(offset=at, position=position) for at, position in page.offsets],
            times=[TimeEntry(timestamp_ms=time_ms, offset=at) for time_ms, at in page.times],
            next_entry=first + limit if page.has_more else None,
        )

    return router
