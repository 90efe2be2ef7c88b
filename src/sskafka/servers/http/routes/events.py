"""The health of the cluster and the counters of the brokers as server-sent events.

health     the answer of /api/v1/cluster, at first and after every change
load       the answer of /api/v1/load, at every interval
problem    {"detail": why the health is not known}; the next `health` ends the problem
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from sskafka.client.broker_load import maybe_broker_loads
from sskafka.client.cluster_status import cluster_status
from sskafka.client.errors import ClientError
from sskafka.model.errors import KafkaError
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.problems import UNAVAILABLE, Problem
from sskafka.servers.http.routes.broker_load import load_of
from sskafka.servers.http.routes.cluster_health import health_of
from sskafka.servers.http.shared_answers import SharedAnswers

INTERVAL_MS_MIN = 500
SAME_INTERVAL = 0.9
"""Streams share counters that are younger than this part of an interval."""
STREAMS_MAX = 32
"""Maximum number of streams at the same time: each of them sends requests to the brokers at every interval."""


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["inspection"])
    streams = asyncio.Semaphore(STREAMS_MAX)
    health, load = SharedAnswers(), SharedAnswers()

    @router.get(
        "/events",
        summary="The health of the cluster whenever it changes, and counters, as server-sent events",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}}},
    )
    async def events(
        request: Request, interval_ms: Annotated[int, Query(ge=INTERVAL_MS_MIN, le=60_000)] = 1_000
    ) -> StreamingResponse:
        if streams.locked():
            raise Problem(UNAVAILABLE, f"{STREAMS_MAX} clients follow the events already; try again later")
        stream = _stream(context, request, health, load, interval_ms / 1000, streams)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    return router


async def _stream(
    context: HttpContext,
    request: Request,
    health: SharedAnswers,
    load: SharedAnswers,
    interval_s: float,
    streams: asyncio.Semaphore,
) -> AsyncIterator[str]:
    """Yield events until the client disconnects.

    Counters are written at every interval, even while the health is not known: they show the client that this broker is
    there, and a failed write shows us that the client is gone."""
    last, look = "", None
    async with streams:
        try:
            while not await request.is_disconnected():
                look = look or asyncio.create_task(_health_event(context, request, health, interval_s))
                await asyncio.wait([look], timeout=interval_s)
                if look.done():
                    event, look = look.result(), None
                    if event != last:
                        last = event
                        yield event
                yield await _load_event(context, request, load, interval_s)
                await asyncio.sleep(interval_s)
        finally:
            if look is not None:
                look.cancel()


async def _health_event(context: HttpContext, request: Request, health: SharedAnswers, interval_s: float) -> str:
    async def look() -> str:
        async with context.clients(request) as clients:
            return health_of(await cluster_status(clients.cluster)).model_dump_json()

    try:
        return _event("health", await health.recent(context.client_of(request), interval_s, look))
    except (KafkaError, ClientError, TimeoutError) as error:
        return _event("problem", json.dumps({"detail": str(error)}))


async def _load_event(context: HttpContext, request: Request, load: SharedAnswers, interval_s: float) -> str:
    """Return the counters; those of no broker for a client that may not describe the cluster."""

    async def look() -> str:
        async with context.clients(request) as clients:
            loads = await maybe_broker_loads(clients.cluster, ())
        return load_of(loads, context.clock.now_ms()).model_dump_json()

    return _event("load", await load.recent(context.client_of(request), interval_s * SAME_INTERVAL, look))


def _event(name: str, data: str) -> str:
    return f"event: {name}\ndata: {data}\n\n"
