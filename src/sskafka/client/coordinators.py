"""Find the coordinator of a group or a transactional id, and remember it."""

from enum import IntEnum

from sskafka.client.cluster import Cluster
from sskafka.client.connection import BrokerConnection
from sskafka.client.errors import raise_for
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

_ONE_KEY_UNTIL = 3


class CoordinatorType(IntEnum):
    GROUP = 0
    TRANSACTION = 1


async def coordinator_connection(cluster: Cluster, kind: CoordinatorType, key: str) -> BrokerConnection:
    """Return a connection to the coordinator of `key`; raise a retriable error while there is none."""
    return await cluster.connection_to(await coordinator_of(cluster, kind, key))


async def coordinator_of(cluster: Cluster, kind: CoordinatorType, key: str) -> int:
    """Return the node id of the coordinator of `key`, which is asked for only once.

    Use it within `Cluster.retrying`, which forgets coordinators when an attempt fails."""
    known = cluster.coordinators.get((kind, key))
    if known is None or known not in cluster.view.brokers:
        known = cluster.coordinators[kind, key] = await _find_coordinator(cluster, kind, key)
    return known


async def _find_coordinator(cluster: Cluster, kind: CoordinatorType, key: str) -> int:
    """Return the node id of the coordinator of `key`; raise a retriable error while there is none."""
    connection = await cluster.any_connection()
    version = connection.version_for(FindCoordinatorRequest, at_most=_ONE_KEY_UNTIL)
    request = FindCoordinatorRequest(key=key, key_type=kind if version >= 1 else 0)
    response = await connection.request(request, FindCoordinatorResponse, version=version)
    raise_for(response.error_code, response.error_message or f"FindCoordinator for {key!r}")
    if response.node_id not in cluster.view.brokers:
        await cluster.refresh()
    return response.node_id
