"""Topics with their partitions and settings, and the settings of brokers."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from sskafka.client.admin import Admin
from sskafka.client.broker_load import TopicUsage, maybe_broker_loads, topic_usage
from sskafka.client.cluster import Cluster
from sskafka.client.configs import Resource, describe_configs
from sskafka.client.metadata import PartitionView, TopicView
from sskafka.client.offsets import EARLIEST, LATEST, FoundOffset, list_offsets
from sskafka.model.config_description import ConfigSource
from sskafka.model.ids import TopicPartition, uuid_text
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.problems import NOT_FOUND, Problem, documented
from sskafka.servers.http.routes.paging import After, Limit, Name, Search, page


class TopicSummary(BaseModel):
    name: str
    is_internal: bool
    partitions: int
    replication_factor: int
    under_replicated: int
    offline: int
    log_bytes: Annotated[int | None, Field(description="Size of all replicas; null if no broker reports it.")]
    messages_in: Annotated[int | None, Field(description="Counted since the brokers have started, as the next two.")]
    bytes_in: int | None
    bytes_out: int | None


class TopicPage(BaseModel):
    time_ms: Annotated[int, Field(description="When the counters were read.")]
    topics: list[TopicSummary]
    next_name: Annotated[str | None, Field(description="`after` of the next page; null on the last page.")]


class Partition(BaseModel):
    partition: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    log_start_offset: Annotated[int | None, Field(description="null while the partition has no leader.")]
    high_watermark: int | None


class Config(BaseModel):
    name: str
    value: Annotated[str | None, Field(description="null if the value is secret.")]
    source: Annotated[str, Field(description="Where the value is set, in Kafka's words, e.g. DEFAULT_CONFIG.")]
    is_read_only: bool
    documentation: str | None


class Configs(BaseModel):
    configs: list[Config]


class TopicDetails(BaseModel):
    name: str
    topic_id: str
    is_internal: bool
    partitions: list[Partition]
    configs: Annotated[list[Config], Field(description="Settings of this topic alone.")]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["inspection"])

    @router.get("/topics", summary="The topics of the cluster, by name")
    async def topics(request: Request, search: Search = "", after: After = "", limit: Limit = 100) -> TopicPage:
        async with context.clients(request) as clients:
            named = {topic.name: topic for topic in await Admin(clients.cluster).list_topics(internal=True)}
            names, following = page(named, search, after, limit)
            loads = await maybe_broker_loads(clients.cluster, names)
        usage = topic_usage(loads.values())
        return TopicPage(
            time_ms=context.clock.now_ms(),
            topics=[_summary(named[name], usage.get(name)) for name in names],
            next_name=following,
        )

    @router.get(
        "/topics/{topic_name}",
        summary="The partitions of a topic with leader, in-sync replicas and offsets, and its settings",
        responses=documented({NOT_FOUND: "There is no such topic."}),
    )
    async def topic(topic_name: Name, request: Request) -> TopicDetails:
        async with context.clients(request) as clients:
            clients.cluster.forget(topic_name)
            view = await clients.cluster.topic(topic_name)
            configs = await _configs(clients.cluster, Resource.topic(topic_name))
            partitions = await _partitions(clients.cluster, view)
        own = [config for config in configs if config.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.name]
        return TopicDetails(
            name=view.name,
            topic_id=uuid_text(view.topic_id),
            is_internal=view.is_internal,
            partitions=partitions,
            configs=own,
        )

    @router.get(
        "/topics/{topic_name}/configs",
        summary="All settings of a topic, with their documentation",
        responses=documented({NOT_FOUND: "There is no such topic."}),
    )
    async def topic_configs(topic_name: Name, request: Request) -> Configs:
        async with context.clients(request) as clients:
            await clients.cluster.topic(topic_name)
            return Configs(configs=await _configs(clients.cluster, Resource.topic(topic_name)))

    @router.get(
        "/brokers/{node_id}/configs",
        summary="The settings of a broker, with their documentation",
        responses=documented({NOT_FOUND: "There is no such broker."}),
    )
    async def broker_configs(node_id: Annotated[int, Path(ge=0, le=2**31 - 1)], request: Request) -> Configs:
        async with context.clients(request) as clients:
            if node_id not in {broker.node_id for broker in await clients.cluster.brokers()}:
                raise Problem(NOT_FOUND, f"there is no live broker {node_id}")
            return Configs(configs=await _configs(clients.cluster, Resource.broker(node_id)))

    return router


def _summary(topic: TopicView, usage: TopicUsage | None) -> TopicSummary:
    partitions = topic.partitions.values()
    return TopicSummary(
        name=topic.name,
        is_internal=topic.is_internal,
        partitions=len(partitions),
        replication_factor=max((len(partition.replicas) for partition in partitions), default=0),
        under_replicated=sum(len(partition.isr) < len(partition.replicas) for partition in partitions),
        offline=sum(partition.leader < 0 for partition in partitions),
        log_bytes=None if usage is None else usage.log_bytes,
        messages_in=None if usage is None else usage.messages_in,
        bytes_in=None if usage is None else usage.bytes_in,
        bytes_out=None if usage is None else usage.bytes_out,
    )


async def _configs(cluster: Cluster, resource: Resource) -> list[Config]:
    found = await describe_configs(cluster, resource, documentation=True)
    return [
        Config(
            name=config.name,
            value=None if config.is_sensitive else config.value,
            source=ConfigSource(config.source).name,
            is_read_only=config.is_read_only,
            documentation=config.documentation,
        )
        for config in sorted(found)
    ]


async def _partitions(cluster: Cluster, view: TopicView) -> list[Partition]:
    led = [TopicPartition(view.name, number) for number, one in view.partitions.items() if one.leader >= 0]
    starts = await list_offsets(cluster, dict.fromkeys(led, EARLIEST))
    ends = await list_offsets(cluster, dict.fromkeys(led, LATEST))
    return [
        _partition(one, TopicPartition(view.name, number), starts, ends)
        for number, one in sorted(view.partitions.items())
    ]


def _partition(
    view: PartitionView,
    at: TopicPartition,
    starts: dict[TopicPartition, FoundOffset],
    ends: dict[TopicPartition, FoundOffset],
) -> Partition:
    return Partition(
        partition=view.partition,
        leader=view.leader,
        leader_epoch=view.leader_epoch,
        replicas=list(view.replicas),
        isr=list(view.isr),
        log_start_offset=starts[at].offset if at in starts else None,
        high_watermark=ends[at].offset if at in ends else None,
    )
