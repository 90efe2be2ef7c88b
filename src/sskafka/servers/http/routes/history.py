"""The last quarter of an hour of the cluster, of a topic and of a group, with which the charts of the console begin.

A caller sees the history of what the caller may describe now: each route asks the brokers for the caller first.
"""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from sskafka.client.broker_load import TopicUsage, maybe_broker_loads, topic_usage
from sskafka.client.groups import describe_group
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.problems import NOT_FOUND, documented
from sskafka.servers.http.routes.broker_load import Load, load_of
from sskafka.servers.http.routes.paging import Name
from sskafka.servers.http.routes.topic_replicas import TopicCounters


class TrafficPoint(BaseModel):
    time_ms: int
    messages_in: Annotated[float | None, Field(description="Per second, as the next four; null: not known.")]
    bytes_in: float | None
    bytes_out: float | None
    replication: Annotated[float | None, Field(description="Bytes sent to followers.")]
    requests: float | None
    produce_p99_ms: float | None
    other_p99_ms: Annotated[float | None, Field(description="Of requests that do not wait on purpose.")]


class TrafficHistory(BaseModel):
    points: Annotated[list[TrafficPoint], Field(description="Oldest first; empty if the caller may see no counters.")]
    newest: Annotated[Load, Field(description="The counters now.")]


class TopicTrafficPoint(BaseModel):
    time_ms: int
    messages_in: Annotated[float | None, Field(description="Per second, as the next two; null: not known.")]
    bytes_in: float | None
    bytes_out: float | None
    log_bytes: int


class TopicHistory(BaseModel):
    points: Annotated[list[TopicTrafficPoint], Field(description="Oldest first, since somebody first looked at it.")]
    newest: Annotated[TopicCounters, Field(description="The counters now.")]


class GroupLagPoint(BaseModel):
    time_ms: int
    lag: int
    lag_ms: Annotated[int | None, Field(description="Age of the oldest record that the group has not read.")]


class GroupHistory(BaseModel):
    points: Annotated[list[GroupLagPoint], Field(description="Oldest first, since somebody first looked at it.")]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1/history", tags=["inspection"])
    history = context.history

    @router.get("/load", summary="Traffic, requests and latencies of the last 15 minutes, over all brokers")
    async def load(request: Request) -> TrafficHistory:
        async with context.clients(request) as clients:
            loads = await maybe_broker_loads(clients.cluster, ())
        points = history.points if loads else ()
        return TrafficHistory(
            points=[TrafficPoint(**point._asdict()) for point in points], newest=load_of(loads, context.clock.now_ms())
        )

    @router.get(
        "/topics/{topic_name}",
        summary="Traffic of a topic in the last 15 minutes",
        responses=documented({NOT_FOUND: "There is no such topic."}),
    )
    async def topic(topic_name: Name, request: Request) -> TopicHistory:
        async with context.clients(request) as clients:
            await clients.cluster.topic(topic_name)
            usage = topic_usage((await maybe_broker_loads(clients.cluster, [topic_name])).values()).get(topic_name)
        now_ms = context.clock.now_ms()
        points = () if usage is None else history.topics.look(topic_name, now_ms)
        return TopicHistory(
            points=[TopicTrafficPoint(**point._asdict()) for point in points],
            newest=TopicCounters(time_ms=now_ms, **(usage or TopicUsage())._asdict()),
        )

    @router.get(
        "/groups/{group_id:path}",
        summary="Lag of a group in the last 15 minutes",
        responses=documented({NOT_FOUND: "There is no such group."}),
    )
    async def group(group_id: Name, request: Request) -> GroupHistory:
        async with context.clients(request) as clients:
            await describe_group(clients.cluster, group_id)
        points = history.groups.look(group_id, context.clock.now_ms())
        return GroupHistory(points=[GroupLagPoint(**point._asdict()) for point in points])

    return router
