"""The cluster's metadata: a tree in the layout of ZooKeeper, and the newest records of the metadata log."""

import asyncio
import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from sskafka.client.configs import ConfigResourceType, Resource
from sskafka.client.described_image import DescribedCluster, describe, no_configs
from sskafka.metadata.record_codec import UnknownRecordError
from sskafka.metadata.record_json import control_json, record_json
from sskafka.metadata.zookeeper_view import NoNodeError, ZooKeeperView
from sskafka.model.ids import METADATA_TOPIC, TopicPartition
from sskafka.servers.http.context import HttpContext, at_most
from sskafka.servers.http.log_files import LogFiles
from sskafka.servers.http.problems import NOT_FOUND, Problem, documented
from sskafka.servers.http.routes.paging import Limit
from sskafka.storage.record_tail import RecordTail, TailRecord
from sskafka.wire.codec import MalformedMessageError

RECORDS_MAX = 500
LOOKED_AT_MAX = 20_000
"""Records that one page looks at: with metadata.max.idle.interval.ms, few may be other than no-op records."""
METADATA_PARTITION = TopicPartition(METADATA_TOPIC, 0)
END = 2**63 - 1
NO_OP = "NO_OP_RECORD"


class Child(BaseModel):
    name: str
    has_children: bool
    data: Annotated[Any, Field(description="The same as `data` of the child's path.")]


class MetadataNode(BaseModel):
    path: str
    data: Annotated[Any, Field(description="In the format that Kafka had in ZooKeeper; null: it has only children.")]
    children: Annotated[list[Child], Field(description="By name.")]
    left_out: Annotated[int, Field(description="Children that are not shown.")]


class LogRecord(BaseModel):
    offset: int
    leader_epoch: int
    time_ms: Annotated[int, Field(description="When its batch was written.")]
    type: str
    version: int | None
    is_control: Annotated[bool, Field(description="Whether it is a control record of the quorum.")]
    data: Annotated[dict[str, Any] | None, Field(description="Secrets are hidden.")]


class LogRecords(BaseModel):
    records: Annotated[list[LogRecord], Field(description="Newest first, as the log of this broker has them.")]
    next_before: Annotated[int | None, Field(description="`before` of the next page; null at the start of the log.")]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1/metadata", tags=["inspection"])
    files = LogFiles(context)
    tails: dict[Path, RecordTail] = {}

    @router.get(
        "",
        summary="The metadata as a tree of paths, in the layout of ZooKeeper",
        responses=documented({NOT_FOUND: "There is no such path."}),
    )
    async def node(
        request: Request,
        path: Annotated[str, Query(max_length=1_000, description="For example /brokers/ids/1.")] = "/",
        after: Annotated[str, Query(max_length=1_000, description="Only children after this one.")] = "",
        limit: Limit = 1_000,
    ) -> MetadataNode:
        async with context.clients(request) as clients:
            found = await describe(clients.cluster, with_configs=_configs_below(path))
        try:
            return await asyncio.to_thread(_node, found, path, after, limit)
        except NoNodeError as error:
            raise Problem(NOT_FOUND, str(error)) from error

    @router.get("/records", summary="The newest records of the metadata log")
    async def records(
        request: Request,
        before: Annotated[int, Query(ge=0, le=END, description="`next_before` of the page before.")] = END,
        limit: Annotated[int, Query(ge=1, description=f"At most {RECORDS_MAX}."), at_most(RECORDS_MAX)] = 100,
        no_op: Annotated[bool, Query(description="Whether no-op records are shown, too.")] = False,
    ) -> LogRecords:
        def read(directory: Path) -> LogRecords:
            tail = tails.setdefault(directory, RecordTail(files.partitions, directory))
            return _page(tail, before, limit, shows_no_op=no_op)

        return await files.read(request, METADATA_PARTITION, read)

    return router


def _configs_below(path: str) -> Callable[[Resource], bool]:
    """Return which settings a path shows: one topic's, or those of brokers, of which there are few."""
    match [step for step in path.split("/") if step]:
        case ["config", "topics", name]:
            return lambda resource: resource == Resource.topic(name)
        case ["config", "brokers", *_]:
            return lambda resource: resource.type == ConfigResourceType.BROKER
        case _:
            return no_configs


def _node(found: DescribedCluster, path: str, after: str, limit: int) -> MetadataNode:
    view = ZooKeeperView(
        found.image,
        cluster_id=found.cluster_id,
        controller_id=found.controller_id,
        controller_epoch=found.controller_epoch,
    )
    names = [name for name in sorted(view.ls(path)) if name > after]
    children = [_child(view, path, name) for name in names[:limit]]
    return MetadataNode(path=path, data=_value(view.get(path)), children=children, left_out=len(names[limit:]))


def _child(view: ZooKeeperView, path: str, name: str) -> Child:
    at = f"{path.rstrip('/')}/{name}"
    is_unread = at.startswith("/config/topics/")  # settings are read for one topic at a time
    data = None if is_unread else _value(view.get(at))
    return Child(name=name, has_children=bool(view.ls(at)), data=data)


def _value(data: str | None) -> Any:
    return None if data is None else json.loads(data)


def _page(tail: RecordTail, before: int, limit: int, *, shows_no_op: bool) -> LogRecords:
    shown: list[LogRecord] = []
    looked_at = last = 0
    for found in islice(tail.newest_before(before), LOOKED_AT_MAX):
        looked_at, last = looked_at + 1, found.record.offset
        record = _log_record(found)
        if shows_no_op or record.type != NO_OP:
            shown.append(record)
        if len(shown) == limit:
            break
    is_cut = len(shown) == limit or looked_at == LOOKED_AT_MAX
    return LogRecords(records=shown, next_before=last if is_cut and last > 0 else None)


def _log_record(found: TailRecord) -> LogRecord:
    record, header = found
    name, version, data = _decoded(found)
    return LogRecord(
        offset=record.offset,
        leader_epoch=header.leader_epoch,
        time_ms=record.timestamp,
        type=name,
        version=version,
        is_control=header.is_control,
        data=data,
    )


def _decoded(found: TailRecord) -> tuple[str, int | None, dict[str, Any] | None]:
    record, header = found
    try:
        if header.is_control:
            name, fields = control_json(record)
            return name.rstrip(":"), None, fields
        shown = record_json(record.value or b"", hides_secrets=True)
        return shown["type"], shown["version"], shown["data"]
    except (UnknownRecordError, MalformedMessageError, ValueError) as problem:
        return f"unreadable: {problem}", None, None
