"""The replicas of a topic, its counters, and who reads it."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from sskafka.client.broker_load import TopicUsage, maybe_broker_loads, topic_usage
from sskafka.client.group_lag import TopicGroup, groups_of_topic
from sskafka.client.groups import fetched_positions
from sskafka.client.topic_replicas import TopicReplica, topic_replicas
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.problems import NOT_FOUND, documented
from sskafka.servers.http.routes.paging import Name
from sskafka.wire.messages.describe_readers import ReaderPosition

NO_TOPIC = documented({NOT_FOUND: "There is no such topic."})


class Copy(BaseModel):
    directory: str
    log_bytes: int
    is_moving: Annotated[bool, Field(description="Whether a move to this directory has not completed.")]


class Replica(BaseModel):
    partition: int
    broker_id: int
    is_leader: bool
    is_in_sync: bool
    log_end_offset: Annotated[int | None, Field(description="null if the leader does not know it.")]
    lag: Annotated[int | None, Field(description="Records of the leader that the replica has not copied.")]
    copies: Annotated[list[Copy], Field(description="Empty if the broker did not answer.")]


class Replicas(BaseModel):
    replicas: Annotated[list[Replica], Field(description="By partition, in the order of preference.")]


class TopicCounters(BaseModel):
    time_ms: Annotated[int, Field(description="When the counters were read.")]
    messages_in: int
    bytes_in: int
    bytes_out: int
    log_bytes: int


class ReadingGroup(BaseModel):
    group_id: str
    kind: str
    state: str
    partitions: Annotated[int, Field(description="Partitions of the topic with committed offsets of the group.")]
    lag: int


class FetchingClient(BaseModel):
    client_id: str
    partitions: int
    fetch_lag: Annotated[int, Field(description="Records that the client has not fetched, in those partitions.")]
    seconds_ago: Annotated[float, Field(description="Time since the last fetch.")]


class TopicConsumers(BaseModel):
    groups: list[ReadingGroup]
    is_complete: Annotated[bool, Field(description="Whether all groups of the cluster were asked.")]
    readers: Annotated[list[FetchingClient], Field(description="Clients that fetch, whether or not they commit.")]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1/topics/{topic_name}", tags=["inspection"], responses=NO_TOPIC)

    @router.get("/replicas", summary="The replicas of a topic with lag, size and directory")
    async def replicas(topic_name: Name, request: Request) -> Replicas:
        async with context.clients(request) as clients:
            clients.cluster.forget(topic_name)
            found = await topic_replicas(clients.cluster, await clients.cluster.topic(topic_name))
        return Replicas(replicas=[_replica(replica) for replica in found])

    @router.get("/load", summary="Counters of a topic since the brokers have started, and its size")
    async def load(topic_name: Name, request: Request) -> TopicCounters:
        async with context.clients(request) as clients:
            await clients.cluster.topic(topic_name)
            loads = await maybe_broker_loads(clients.cluster, [topic_name])
        usage, now_ms = topic_usage(loads.values()).get(topic_name, TopicUsage()), context.clock.now_ms()
        context.history.topics.look(topic_name, now_ms)
        return TopicCounters(time_ms=now_ms, **usage._asdict())

    @router.get("/consumers", summary="The groups and clients that read a topic")
    async def consumers(topic_name: Name, request: Request) -> TopicConsumers:
        async with context.clients(request) as clients:
            view = await clients.cluster.topic(topic_name)
            groups, is_complete = await groups_of_topic(clients.cluster, view)
            positions = await fetched_positions(clients.cluster, [topic_name])
        return TopicConsumers(
            groups=[_group(group) for group in groups], is_complete=is_complete, readers=_readers(positions)
        )

    return router


def _replica(replica: TopicReplica) -> Replica:
    copies = [Copy(**copy._asdict()) for copy in replica.copies]
    return Replica(**{**replica._asdict(), "copies": copies})


def _group(found: TopicGroup) -> ReadingGroup:
    group = found.group
    return ReadingGroup(
        group_id=group.group_id, kind=group.kind, state=group.state, partitions=found.partitions, lag=found.lag
    )


def _readers(positions: list[ReaderPosition]) -> list[FetchingClient]:
    clients: dict[str, list[ReaderPosition]] = {}
    for position in positions:
        clients.setdefault(position.client_id, []).append(position)
    return [
        FetchingClient(
            client_id=client_id,
            partitions=len(of_client),
            fetch_lag=sum(max(0, one.log_end_offset - one.fetch_offset) for one in of_client),
            seconds_ago=min(one.age_ms for one in of_client) / 1000,
        )
        for client_id, of_client in sorted(clients.items())
    ]
