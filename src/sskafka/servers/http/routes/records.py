"""Pages of records, and single records whole."""

import re
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from sskafka.client.cluster import Cluster
from sskafka.client.fetched import ConsumedRecord
from sskafka.client.offset_range import Span
from sskafka.model.ids import TopicPartition
from sskafka.servers.http.browsing.pages import READ_TIMEOUT_MS, read_page, read_spans
from sskafka.servers.http.context import HttpContext, at_most
from sskafka.servers.http.problems import BAD_REQUEST, NOT_FOUND, Problem, documented
from sskafka.servers.http.routes.paging import Name
from sskafka.servers.http.routes.record_json import Record, RecordView
from sskafka.servers.http.routes.record_selection import RecordQuery, Selection, select

LIMIT_MAX = 500
VALUE_BYTES_MAX = 64 * 1024
WHOLE_BYTES_MAX = 4 * 1024 * 1024
_CURSOR = re.compile(r"\d{1,10}:\d{1,19}(,\d{1,10}:\d{1,19})*")

PartitionNumber = Annotated[int, Path(ge=0, le=2**31 - 1)]
Offset = Annotated[int, Path(ge=0, le=2**63 - 1)]


class RecordPageQuery(RecordQuery):
    order: Annotated[
        Literal["newest", "oldest"],
        Field(description="newest: the records before `from`, newest first. oldest: those from it on, oldest first."),
    ] = "newest"
    limit: Annotated[int, Field(ge=1, description=f"At most {LIMIT_MAX}."), at_most(LIMIT_MAX)] = 50
    value_bytes: Annotated[int, Field(ge=1, description=f"At most {VALUE_BYTES_MAX}."), at_most(VALUE_BYTES_MAX)] = 4096
    cursor: Annotated[str, Field(max_length=32_768, description="`next_cursor` of the page before.")] = ""


class PartitionOffsets(BaseModel):
    partition: int
    log_start_offset: int
    end_offset: Annotated[int, Field(description="High watermark, or last stable offset with `committed`.")]


class Records(BaseModel):
    records: list[Record]
    next_cursor: Annotated[str | None, Field(description="null if there are no more records in this direction.")]
    partitions: list[PartitionOffsets]
    unavailable: Annotated[list[int], Field(description="Partitions without a leader, which were left out.")]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["records"])
    missing = documented({NOT_FOUND: "There is no such topic, partition or record."})

    @router.get("/topics/{topic_name}/records", summary="A page of records, newest or oldest first", responses=missing)
    async def records(topic_name: Name, request: Request, query: Annotated[RecordPageQuery, Query()]) -> Records:
        view = RecordView(query.value_bytes, *query.schemas(topic_name, context.schemas))
        wanted = query.position("end" if query.order == "newest" else "start", context.clock.now_ms())
        async with context.clients(request) as clients, clients.reader.borrowed() as cluster:
            selection = await select(cluster, topic_name, query)
            if query.cursor:
                positions = _positions(topic_name, query.cursor, selection)
            else:
                positions = await selection.starts(cluster, wanted, query.isolation)
            page = await read_page(
                cluster,
                selection.bounds,
                positions,
                query.limit,
                newest_first=query.order == "newest",
                isolation_level=query.isolation_level,
            )
        following = ",".join(f"{one.partition}:{offset}" for one, offset in page.positions.items())
        return Records(
            records=await view.show_all(page.records),
            next_cursor=None if page.is_last else following,
            partitions=[_offsets(partition, span) for partition, span in selection.bounds.items()],
            unavailable=selection.unavailable,
        )

    @router.get("/topics/{topic_name}/partitions/{partition}/records/{offset}", summary="One record", responses=missing)
    async def record(
        topic_name: Name,
        partition: PartitionNumber,
        offset: Offset,
        request: Request,
        query: Annotated[RecordQuery, Query()],
    ) -> Record:
        view = RecordView(WHOLE_BYTES_MAX, *query.schemas(topic_name, context.schemas))
        async with context.clients(request) as clients, clients.reader.borrowed() as cluster:
            return view.show(await record_at(cluster, TopicPartition(topic_name, partition), offset))

    return router


def raw_routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["records"])

    @router.get(
        "/topics/{topic_name}/partitions/{partition}/records/{offset}/{part}",
        summary="The key or the value of a record as it is stored",
        response_class=Response,
        responses={200: {"content": {"application/octet-stream": {}}}, **documented({NOT_FOUND: "There is none."})},
    )
    async def part_of_record(
        topic_name: Name, partition: PartitionNumber, offset: Offset, part: Literal["key", "value"], request: Request
    ) -> Response:
        async with context.clients(request) as clients, clients.reader.borrowed() as cluster:
            record = await record_at(cluster, TopicPartition(topic_name, partition), offset)
        data = record.key if part == "key" else record.value
        if data is None:
            raise Problem(NOT_FOUND, f"the record at offset {offset} of {topic_name}-{partition} has no {part}")
        headers = {
            "Content-Disposition": f'attachment; filename="{topic_name}-{partition}-{offset}.{part}"',
            "X-Content-Type-Options": "nosniff",
        }
        return Response(data, media_type="application/octet-stream", headers=headers)

    return router


async def record_at(cluster: Cluster, partition: TopicPartition, offset: int) -> ConsumedRecord:
    """Return a record. Raise Problem 404 if it was removed, is a marker of a transaction or is not written yet."""
    selection = await select(cluster, partition.topic, RecordQuery(partitions=str(partition.partition)))
    bounds = selection.bounds[partition]
    assert bounds.stop is not None
    if not bounds.start <= offset < bounds.stop:
        text = f"{partition} has the offsets from {bounds.start} to {bounds.stop - 1}, not {offset}"
        raise Problem(NOT_FOUND, text if bounds.start < bounds.stop else f"{partition} has no records")
    span = {partition: Span(offset, offset + 1)}
    found = await read_spans(cluster, span, "read_uncommitted", cluster.deadline_ms(READ_TIMEOUT_MS))
    records = found.get(partition, [])
    if not records:
        raise Problem(NOT_FOUND, f"offset {offset} of {partition} has no record: it was compacted away, or is a marker")
    return records[0]


def _positions(topic: str, cursor: str, selection: Selection) -> dict[TopicPartition, int]:
    """Parse a cursor. A partition that it does not name has become readable since, and is shown from its end."""
    if not _CURSOR.fullmatch(cursor):
        raise Problem(BAD_REQUEST, "cursor: not the next_cursor of a page")
    named = dict(pair.split(":") for pair in cursor.split(","))
    at = {TopicPartition(topic, int(number)): int(offset) for number, offset in named.items()}
    return {partition: at.get(partition, span.stop or 0) for partition, span in selection.bounds.items()}


def _offsets(partition: TopicPartition, span: Span) -> PartitionOffsets:
    return PartitionOffsets(partition=partition.partition, log_start_offset=span.start, end_offset=span.stop or 0)
