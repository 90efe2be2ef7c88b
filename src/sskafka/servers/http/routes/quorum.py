"""Elections of the quorum, as the metadata log of this broker has them."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from sskafka.servers.http.context import HttpContext, at_most
from sskafka.servers.http.describe_check import check_may_describe

ELECTIONS_MAX = 100


class Election(BaseModel):
    leader_epoch: int
    leader_id: int
    time_ms: Annotated[int, Field(description="When the new leader wrote its first record.")]
    granting_voters: Annotated[list[int], Field(description="Voters that voted for the leader.")]


class Elections(BaseModel):
    elections: Annotated[list[Election], Field(description="Newest first. A snapshot replaces the oldest ones.")]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1/quorum", tags=["inspection"])

    @router.get("/elections", summary="The last elections of the quorum, newest first")
    async def elections(
        request: Request,
        limit: Annotated[int, Query(ge=1, description=f"At most {ELECTIONS_MAX}."), at_most(ELECTIONS_MAX)] = 10,
    ) -> Elections:
        await check_may_describe(context, request, "elections")
        found = await context.link.ask("elections", count=limit)
        return Elections(elections=[Election(**election) for election in found])

    return router
