"""Groups with their members and lag."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from sskafka.client.group_lag import PartitionLag, lag_of
from sskafka.client.groups import committed_offsets, describe_group, list_groups
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.problems import NOT_FOUND, documented
from sskafka.servers.http.routes.paging import After, Limit, Name, Search, page


class GroupSummary(BaseModel):
    group_id: str
    kind: str
    state: str
    coordinator: int


class GroupPage(BaseModel):
    groups: list[GroupSummary]
    next_id: Annotated[str | None, Field(description="`after` of the next page; null on the last page.")]


class Member(BaseModel):
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: list[str]


class GroupPartition(BaseModel):
    topic: str
    partition: int
    committed: Annotated[int | None, Field(description="null if the group has not committed an offset.")]
    log_start_offset: int
    log_end_offset: int
    lag: int | None
    lag_ms: Annotated[int | None, Field(description="Age of the first record that the group has not read.")]


class GroupDetails(BaseModel):
    group_id: str
    kind: str
    state: str
    assignor: str
    coordinator: int
    members: list[Member]
    partitions: list[GroupPartition]
    lag: Annotated[int, Field(description="Records that the group has not read, in all partitions.")]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["inspection"])

    @router.get("/groups", summary="The groups of the cluster, by id")
    async def groups(request: Request, search: Search = "", after: After = "", limit: Limit = 100) -> GroupPage:
        async with context.clients(request) as clients:
            found = {group.group_id: group for group in await list_groups(clients.cluster)}
        ids, following = page(found, search, after, limit)
        chosen = [found[group_id] for group_id in ids]
        listed = [
            GroupSummary(group_id=one.group_id, kind=one.kind, state=one.state, coordinator=one.coordinator)
            for one in chosen
        ]
        return GroupPage(groups=listed, next_id=following)

    @router.get(
        "/groups/{group_id:path}",
        summary="The members of a group, what they are assigned, and the group's lag",
        responses=documented({NOT_FOUND: "There is no such group."}),
    )
    async def group(group_id: Name, request: Request) -> GroupDetails:
        async with context.clients(request) as clients:
            described = await describe_group(clients.cluster, group_id)
            committed = await committed_offsets(clients.cluster, group_id)
            assigned = {partition for member in described.members for partition in member.partitions}
            lags = await lag_of(clients.cluster, committed, assigned)
        context.history.groups.look(group_id, context.clock.now_ms())
        return GroupDetails(
            group_id=group_id,
            kind=described.kind,
            state=described.state,
            assignor=described.assignor,
            coordinator=described.coordinator,
            members=[
                Member(
                    member_id=member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    host=member.host,
                    partitions=[str(partition) for partition in sorted(member.partitions)],
                )
                for member in described.members
            ],
            partitions=[_group_partition(lag) for lag in lags],
            lag=sum(lag.lag or 0 for lag in lags),
        )

    return router


def _group_partition(lag: PartitionLag) -> GroupPartition:
    return GroupPartition(
        topic=lag.partition.topic,
        partition=lag.partition.partition,
        committed=lag.committed,
        log_start_offset=lag.log_start,
        log_end_offset=lag.log_end,
        lag=lag.lag,
        lag_ms=lag.lag_ms,
    )
