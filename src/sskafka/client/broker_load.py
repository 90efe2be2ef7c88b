"""Counters of all brokers, as DescribeBrokerLoad returns them, and of topics over all brokers."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sskafka.client.cluster import Cluster
from sskafka.client.errors import ClientError, raise_for
from sskafka.model.errors import KafkaError
from sskafka.wire.messages.describe_broker_load import DescribeBrokerLoadRequest, DescribeBrokerLoadResponse

ANSWER_TIMEOUT_S = 3.0


class TopicUsage(NamedTuple):
    """Counters of a topic since the brokers have started, and the size of all its replicas."""

    messages_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    log_bytes: int = 0


async def broker_loads(cluster: Cluster, topics: Iterable[str] | None = ()) -> Mapping[int, DescribeBrokerLoadResponse]:
    """Ask all live brokers for their counters, with those of `topics` (None: of all). Brokers that do not answer are
    left out.

    Raises KafkaError if the client may not describe the cluster."""
    request = DescribeBrokerLoadRequest(None if topics is None else list(topics))
    brokers = [broker.node_id for broker in await cluster.brokers()]
    answers = await asyncio.gather(*(_load(cluster, node_id, request) for node_id in brokers))
    return {node_id: answer for node_id, answer in zip(brokers, answers, strict=True) if answer is not None}


async def _load(
    cluster: Cluster, node_id: int, request: DescribeBrokerLoadRequest
) -> DescribeBrokerLoadResponse | None:
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            connection = await cluster.connection_to(node_id)
            response = await connection.request(request, DescribeBrokerLoadResponse)
    except (ClientError, TimeoutError):
        return None
    raise_for(response.error_code, f"the load of broker {node_id}")
    return response


def topic_usage(loads: Iterable[DescribeBrokerLoadResponse]) -> dict[str, TopicUsage]:
    """Add up the counters of each topic over the brokers."""
    found: dict[str, TopicUsage] = {}
    for load in loads:
        for topic in load.topics:
            known = found.get(topic.name, TopicUsage())
            found[topic.name] = TopicUsage(
                known.messages_in + topic.messages_in,
                known.bytes_in + topic.bytes_in,
                known.bytes_out + topic.bytes_out,
                known.log_bytes + topic.log_bytes,
            )
    return found


async def maybe_broker_loads(
    cluster: Cluster, topics: Iterable[str] | None
) -> Mapping[int, DescribeBrokerLoadResponse]:
    """Like `broker_loads`, but empty for clients that may not describe the cluster, or if no broker is known."""
    try:
        return await broker_loads(cluster, topics)
    except (KafkaError, ClientError):
        return {}
