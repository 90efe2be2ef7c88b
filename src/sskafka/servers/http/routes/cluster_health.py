"""The health of the cluster, and what needs attention.

Every number comes from requests of the Kafka protocol on the caller's own connections, so the same ACLs decide what a
caller sees.
"""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from sskafka.client.cluster_status import BrokerStatus, ClusterStatus, cluster_status
from sskafka.servers.http.context import HttpContext


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

    @router.get("/cluster", summary="The health of the cluster, and what needs attention")
    async def cluster(request: Request) -> ClusterHealth:
        async with context.clients(request) as clients:
            return health_of(await cluster_status(clients.cluster))

    return router


def health_of(status: ClusterStatus) -> ClusterHealth:
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
