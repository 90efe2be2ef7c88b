"""The rebalance timeline of a group, new offsets for it, and its deletion."""

from typing import Annotated, Self

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, model_validator

from sskafka.client.cluster import Cluster
from sskafka.client.group_reset import check_has_no_members, named_partitions, plan_reset
from sskafka.client.groups import commit_offsets, delete_group, describe_group, group_timeline
from sskafka.client.offset_range import OffsetRange
from sskafka.model.ids import TopicPartition
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.problems import BAD_REQUEST, CONFLICT, NOT_FOUND, Problem, documented
from sskafka.servers.http.routes.groups import Timeline, event_json
from sskafka.servers.http.routes.paging import NAME_MAX, Name
from sskafka.servers.http.routes.record_selection import position_of

_NO_GROUP = {NOT_FOUND: "There is no such group."}
_HAS_MEMBERS = {CONFLICT: "The group has members; stop them first."}


class OffsetReset(BaseModel):
    """The new offsets of a group without members: at a position, or shifted by a number of records."""

    topics: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=4 * NAME_MAX)]] | None,
        Field(max_length=1_000, description="TOPIC, or TOPIC:0,1 for some partitions; null: all that are committed."),
    ] = None
    to: Annotated[
        str | None, Field(max_length=64, description="start, end, N, +N after the start, -N before the end, or @TIME.")
    ] = None
    shift_by: Annotated[int | None, Field(ge=-(2**62), le=2**62, description="Records; negative: back.")] = None
    execute: Annotated[bool, Field(description="false: only show the plan.")] = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.to is None) == (self.shift_by is None):
            raise ValueError("give either to or shift_by")
        return self

    def target(self, now_ms: int) -> OffsetRange | None:
        if self.to is None:
            return None
        return position_of(self.to, "to", now_ms)


class MovedPartition(BaseModel):
    topic: str
    partition: int
    before: Annotated[int | None, Field(description="null if the group has not committed an offset.")]
    after: int


class OffsetsReset(BaseModel):
    executed: bool
    partitions: list[MovedPartition]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["groups"])

    @router.get(
        "/groups/{group_id:path}/timeline",
        summary="Who joined, left or timed out, why, and how long rebalances took",
        responses=documented(_NO_GROUP),
    )
    async def timeline(group_id: Name, request: Request) -> Timeline:
        async with context.clients(request) as clients:
            events = await group_timeline(clients.cluster, group_id)
        return Timeline(group_id=group_id, events=[event_json(event) for event in events])

    @router.post(
        "/groups/{group_id:path}/offsets",
        summary="Move the offsets of a group without members; only a plan unless `execute` is set",
        responses=documented({**_HAS_MEMBERS, NOT_FOUND: "There is no such topic or partition."}),
    )
    async def reset(group_id: Name, wanted: OffsetReset, request: Request) -> OffsetsReset:
        target = wanted.target(context.clock.now_ms())
        async with context.clients(request) as clients:
            cluster = clients.cluster
            chosen = None if wanted.topics is None else await _chosen(cluster, wanted.topics)
            plan = await plan_reset(cluster, group_id, chosen, target, wanted.shift_by or 0)
            if wanted.execute:
                await commit_offsets(cluster, group_id, {partition: after for partition, (_, after) in plan.items()})
        moved = [
            MovedPartition(topic=topic, partition=number, before=before, after=after)
            for (topic, number), (before, after) in sorted(plan.items())
        ]
        return OffsetsReset(executed=wanted.execute, partitions=moved)

    @router.delete(
        "/groups/{group_id:path}",
        status_code=204,
        summary="Delete a group without members, and its offsets",
        responses=documented({**_NO_GROUP, **_HAS_MEMBERS}),
    )
    async def delete(group_id: Name, request: Request) -> None:
        async with context.clients(request) as clients:
            await describe_group(clients.cluster, group_id)
            await check_has_no_members(clients.cluster, group_id)
            await delete_group(clients.cluster, group_id)

    return router


async def _chosen(cluster: Cluster, topics: list[str]) -> list[TopicPartition]:
    try:
        chosen = await named_partitions(cluster, topics)
    except ValueError as error:
        raise Problem(BAD_REQUEST, f"topics: {error}") from None
    for partition in chosen:
        await cluster.partition(partition)
    return chosen
