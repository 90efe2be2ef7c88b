"""Groups of the cluster, the events of one group, and the fetch positions of clients."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field

from sskafka.client.groups import fetched_positions, group_timeline, list_groups
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.problems import NOT_FOUND, documented
from sskafka.wire.messages.describe_group_timeline import TimelineEvent
from sskafka.wire.messages.describe_readers import ReaderPosition


class Group(BaseModel):
    group_id: str
    kind: Annotated[str, Field(description="classic or consumer")]
    state: str
    protocol_type: str
    coordinator: int


class Groups(BaseModel):
    groups: list[Group]


class Event(BaseModel):
    time_ms: int
    event: str
    generation: int
    members: Annotated[int, Field(description="Members in the group at that time.")]
    duration_ms: Annotated[int | None, Field(description="Duration of a completed rebalance.")]
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    reason: str


class Timeline(BaseModel):
    group_id: str
    events: Annotated[list[Event], Field(description="Newest last, since the coordinator loaded the group.")]


class Reader(BaseModel):
    client_id: str
    topic: str
    partition: int
    fetched_offset: Annotated[int, Field(description="Next offset to fetch; fetched does not mean processed.")]
    log_end_offset: int
    fetch_lag: int
    seconds_ago: float


class Readers(BaseModel):
    readers: list[Reader]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/groups/v1", tags=["groups"])

    @router.get("/groups", summary="The groups of the cluster")
    async def groups(request: Request) -> Groups:
        async with context.clients(request) as clients:
            return Groups(groups=[Group(**group._asdict()) for group in await list_groups(clients.cluster)])

    @router.get(
        "/groups/{group_id}/timeline",
        summary="Who joined, left or timed out, why, and how long it took",
        responses=documented({NOT_FOUND: "There is no such group."}),
    )
    async def timeline(group_id: Annotated[str, Path(min_length=1, max_length=249)], request: Request) -> Timeline:
        async with context.clients(request) as clients:
            events = await group_timeline(clients.cluster, group_id)
        return Timeline(group_id=group_id, events=[event_json(event) for event in events])

    @router.get("/readers", summary="How far clients have fetched, whether or not they commit")
    async def readers(request: Request, topic: Annotated[str | None, Query(max_length=249)] = None) -> Readers:
        async with context.clients(request) as clients:
            found = await fetched_positions(clients.cluster, None if topic is None else [topic])
        return Readers(readers=[_reader(reader) for reader in found])

    return router


def event_json(event: TimelineEvent) -> Event:
    return Event(
        time_ms=event.at_ms,
        event=event.kind,
        generation=event.generation,
        members=event.member_count,
        duration_ms=event.duration_ms if event.duration_ms >= 0 else None,
        member_id=event.member_id,
        instance_id=event.instance_id,
        client_id=event.client_id,
        host=event.client_host,
        reason=event.reason,
    )


def _reader(reader: ReaderPosition) -> Reader:
    return Reader(
        client_id=reader.client_id,
        topic=reader.topic,
        partition=reader.partition,
        fetched_offset=reader.fetch_offset,
        log_end_offset=reader.log_end_offset,
        fetch_lag=max(0, reader.log_end_offset - reader.fetch_offset),
        seconds_ago=reader.age_ms / 1000,
    )
