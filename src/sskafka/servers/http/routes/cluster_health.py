"""The health of the cluster, and the same as server-sent events.

Every number comes from requests of the Kafka protocol on the caller's own connections, so the same ACLs decide what a
caller sees.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from sskafka.client.cluster_status import BrokerStatus, ClusterStatus, cluster_status
from sskafka.client.errors import ClientError
from sskafka.model.errors import KafkaError
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.problems import UNAVAILABLE, Problem

INTERVAL_MS_MIN = 500
STREAMS_MAX = 32
"""Streams of events at the same time: each of them asks the brokers again and again."""


class Broker(BaseModel):
    node_id: int
    address: str
    rack: str | None
    is_fenced: bool
    is_controller: bool
    leaders: int
    replicas: int
    log_bytes: Annotated[int | None, Field(description="null if the broker did not answer.")]
    disk_total_bytes: int | None
    disk_usable_bytes: int | None


class Voter(BaseModel):
    node_id: int
    lag: Annotated[int, Field(description="Records of the metadata log that the voter has not fetched yet.")]


class Quorum(BaseModel):
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: list[Voter]


class AttentionItem(BaseModel):
    severity: Annotated[str, Field(description="error or warning")]
    text: str
    next_step: str


class ClusterHealth(BaseModel):
    cluster_id: str
    controller_id: int
    brokers: list[Broker]
    quorum: Quorum
    topics: int
    partitions: int
    offline: int
    under_min_isr: int
    at_min_isr: int
    under_replicated: int
    not_preferred: Annotated[int, Field(description="Partitions that their preferred replica does not lead.")]
    attention: Annotated[list[AttentionItem], Field(description="What needs attention, errors first.")]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["inspection"])
    streams = asyncio.Semaphore(STREAMS_MAX)

    @router.get("/cluster", summary="The health of the cluster, and what needs attention")
    async def cluster(request: Request) -> ClusterHealth:
        async with context.clients(request) as clients:
            return _health(await cluster_status(clients.cluster))

    @router.get(
        "/events",
        summary="The health of the cluster as server-sent events, whenever it changes",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}}},
    )
    async def events(
        request: Request, interval_ms: Annotated[int, Query(ge=INTERVAL_MS_MIN, le=60_000)] = 1_000
    ) -> StreamingResponse:
        if streams.locked():
            raise Problem(UNAVAILABLE, f"{STREAMS_MAX} clients follow the events already; try again later")
        changes = _changes(context, request, interval_ms / 1000, streams)
        return StreamingResponse(changes, media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    return router


def _health(status: ClusterStatus) -> ClusterHealth:
    health, quorum = status.health, status.quorum
    end = max((voter.log_end_offset for voter in quorum.voters), default=0)
    counts = {name: len(at) for name, at in health._asdict().items() if isinstance(at, tuple)}
    return ClusterHealth(
        cluster_id=status.cluster_id,
        controller_id=status.controller_id,
        brokers=[_broker(broker) for broker in status.brokers],
        quorum=Quorum(
            leader_id=quorum.leader_id,
            leader_epoch=quorum.leader_epoch,
            high_watermark=quorum.high_watermark,
            voters=[Voter(node_id=one.node_id, lag=max(0, end - one.log_end_offset)) for one in quorum.voters],
        ),
        topics=health.topics,
        partitions=health.partitions,
        **counts,
        attention=[AttentionItem(**problem._asdict()) for problem in status.problems],
    )


def _broker(status: BrokerStatus) -> Broker:
    directories = status.directories
    known = [usage for usage in directories if usage.total_bytes is not None]
    return Broker(
        node_id=status.node_id,
        address=status.address,
        rack=status.rack,
        is_fenced=status.is_fenced,
        is_controller=status.is_controller,
        leaders=status.leaders,
        replicas=status.replicas,
        log_bytes=sum(usage.log_bytes for usage in directories) if directories else None,
        disk_total_bytes=sum(usage.total_bytes or 0 for usage in known) if known else None,
        disk_usable_bytes=sum(usage.usable_bytes or 0 for usage in known) if known else None,
    )


async def _changes(
    context: HttpContext, request: Request, interval_s: float, streams: asyncio.Semaphore
) -> AsyncIterator[str]:
    """Yield the health of the cluster now, and again whenever it has changed, until the client disconnects."""
    last = ""
    async with streams:
        while not await request.is_disconnected():
            try:
                async with context.clients(request) as clients:
                    text = _health(await cluster_status(clients.cluster)).model_dump_json()
                event = "health"
            except (KafkaError, ClientError, TimeoutError) as error:
                text, event = json.dumps({"detail": str(error)}), "problem"
            if text != last:
                last = text
                yield f"event: {event}\ndata: {text}\n\n"
            else:
                yield "event: alive\ndata: {}\n\n"  # shows the client that we are here, and us that it is
            await asyncio.sleep(interval_s)
