"""Routes for operators: liveness, readiness and metrics."""

import asyncio
from collections.abc import Iterable, Mapping

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from sskafka.client.cluster import Cluster
from sskafka.client.errors import ClientError, raise_for
from sskafka.client.groups import Committed, committed_offsets
from sskafka.client.offsets import LATEST, list_offsets
from sskafka.model.counters import Sample
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.servers.http.caller import caller_of
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.problems import FORBIDDEN, UNAVAILABLE, Problem
from sskafka.servers.http.prometheus import CONTENT_TYPE, exposition
from sskafka.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

ALIVE_TIMEOUT_S = 5.0
TIMEOUT_S = 2.0
GROUPS_MAX = 500
OFFSETS_TOPIC = "__consumer_offsets"
_PREFIX = "kafka_consumergroup_"


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
        await _check_may_see_metrics(context, request)
        parts = await context.link.ask_for_parts("samples")
        lag = await group_lag_samples(context.cluster) if context.configuration.is_broker else []
        samples = [sample for part in parts for sample in part]
        text = exposition([*samples, *context.acceptor_counters.samples(), *lag])
        return PlainTextResponse(text, media_type=CONTENT_TYPE)

    return router


async def _check_may_see_metrics(context: HttpContext, request: Request) -> None:
    """Metrics name topics and groups. They are open where the HTTP server has no security protocol."""
    security, caller = context.configuration.security, caller_of(request)
    is_open = not security.has_tls and not security.mechanisms
    if not is_open and not await context.link.ask("may_see_metrics", **caller._asdict()):
        raise Problem(FORBIDDEN, f"{caller.principal} may not DESCRIBE the cluster, which metrics need")


async def group_lag_samples(cluster: Cluster) -> list[Sample]:
    """Return consumer lag for /metrics, of the groups that this broker coordinates, read over the Kafka protocol.

    Kafka's own metrics leave lag to exporters; names and labels are those of the most common exporter. Values that are
    not available in time are left out: a metrics page must not wait for a broker that is down."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await _samples(cluster)
    except (TimeoutError, KafkaError, ClientError):
        return []


async def _samples(cluster: Cluster) -> list[Sample]:
    committed = {group: await committed_offsets(cluster, group) for group in await _own_groups(cluster)}
    known = {partition for offsets in committed.values() for partition in offsets}
    ends = await _end_offsets(cluster, known)
    return [sample for group, offsets in committed.items() for sample in _of_group(group, offsets, ends)]


async def _own_groups(cluster: Cluster) -> list[str]:
    """Return the groups of this broker. Without __consumer_offsets there are none, and the broker is not asked."""
    if OFFSETS_TOPIC not in (await cluster.refresh([OFFSETS_TOPIC])).topics:
        return []
    connection = await cluster.any_connection()
    response = await connection.request(ListGroupsRequest(), ListGroupsResponse)
    raise_for(response.error_code)
    return sorted(group.group_id for group in response.groups)[:GROUPS_MAX]


async def _end_offsets(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the end offsets of the partitions that exist and have a leader."""
    view = await cluster.refresh({partition.topic for partition in partitions})
    states = {partition: view.partition(partition) for partition in partitions}
    led = [partition for partition, state in states.items() if state is not None and state.leader >= 0]
    found = await list_offsets(cluster, dict.fromkeys(led, LATEST))
    return {partition: answer.offset for partition, answer in found.items()}


def _of_group(
    group: str, offsets: Mapping[TopicPartition, Committed], ends: Mapping[TopicPartition, int]
) -> Iterable[Sample]:
    for partition, committed in sorted(offsets.items()):
        labels = (("consumergroup", group), ("topic", partition.topic), ("partition", str(partition.partition)))
        yield Sample(_PREFIX + "current_offset", labels, committed.offset)
        if partition in ends:
            yield Sample(_PREFIX + "lag", labels, max(ends[partition] - committed.offset, 0))
