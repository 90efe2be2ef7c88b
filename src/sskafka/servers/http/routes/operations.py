"""Routes for operators: liveness, readiness and metrics."""

import asyncio

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.describe_check import check_may_describe
from sskafka.servers.http.metric_table import BROKER_METRICS, by_sample_name
from sskafka.servers.http.problems import UNAVAILABLE, Problem
from sskafka.servers.http.prometheus import CONTENT_TYPE, exposition

ALIVE_TIMEOUT_S = 5.0
_METRICS = by_sample_name(BROKER_METRICS)


class Status(BaseModel):
    status: str


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(tags=["operations"])

    @router.get("/livez", summary="The broker's event loop is responsive")
    async def livez() -> Status:
        try:
            async with asyncio.timeout(ALIVE_TIMEOUT_S):
                await context.link.ask("alive")
        except TimeoutError:
            raise Problem(UNAVAILABLE, f"the broker did not answer within {ALIVE_TIMEOUT_S:.0f} s") from None
        return Status(status="alive")

    @router.get("/readyz", summary="The metadata is loaded and the broker unfenced; the quorum has a leader")
    async def readyz() -> Status:
        problem = await context.link.ask("not_ready")
        if problem is not None:
            raise Problem(UNAVAILABLE, problem)
        return Status(status="ready")

    @router.get("/metrics", summary="Counters for Prometheus", response_class=PlainTextResponse)
    async def metrics(request: Request) -> PlainTextResponse:
        await check_may_describe(context, request, "metrics")
        text = exposition(await context.metrics.collect(), _METRICS)
        return PlainTextResponse(text, media_type=CONTENT_TYPE)

    return router
