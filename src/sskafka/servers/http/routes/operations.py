"""Routes for operators: liveness, readiness and metrics."""

import asyncio

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.group_lag import group_lag_samples
from sskafka.servers.http.problems import UNAVAILABLE, Problem
from sskafka.servers.http.prometheus import CONTENT_TYPE, exposition

ALIVE_TIMEOUT_S = 5.0


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
    async def metrics() -> PlainTextResponse:
        parts = await context.link.ask_for_parts("samples")
        lag = await group_lag_samples(context.cluster) if context.configuration.is_broker else []
        samples = [sample for part in parts for sample in part]
        text = exposition([*samples, *context.acceptor_counters.samples(), *lag])
        return PlainTextResponse(text, media_type=CONTENT_TYPE)

    return router
