"""Which handlers serve which listeners, and what they are made from.

Clients' listeners offer everything. Controllers' listeners offer what nodes ask each other and what administrators may
ask a controller; they are served on the control loop.
"""

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from sskafka.client.connection import Address
from sskafka.model.clock import Clock
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.settings import Settings
from sskafka.quorum.node_control import NodeControl
from sskafka.raft.voters import NO_NODE
from sskafka.replication.housekeeping import Housekeeping
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.replication.timer_wheel import TimerWheel
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.group_services import GroupServices
from sskafka.servers.kafka.handlers.administration import AdministrationHandlers
from sskafka.servers.kafka.handlers.api_versions import ApiVersionsHandler
from sskafka.servers.kafka.handlers.broker_identity import BrokerIdentityHandler
from sskafka.servers.kafka.handlers.cluster import ClusterHandler
from sskafka.servers.kafka.handlers.configs import ConfigHandlers, ListenerPorts
from sskafka.servers.kafka.handlers.controller_apis import ControllerHandlers
from sskafka.servers.kafka.handlers.delete_records import DeleteRecordsHandler
from sskafka.servers.kafka.handlers.fetch import FetchHandler
from sskafka.servers.kafka.handlers.fetch_sessions import FetchSessions
from sskafka.servers.kafka.handlers.log_dirs import LogDirsHandler
from sskafka.servers.kafka.handlers.metadata import MetadataHandler
from sskafka.servers.kafka.handlers.offsets import OffsetHandlers
from sskafka.servers.kafka.handlers.produce import ProduceHandler
from sskafka.servers.kafka.handlers.producers import ProducerHandlers, ProducerIds
from sskafka.servers.kafka.handlers.quorum import QuorumHandlers
from sskafka.servers.kafka.handlers.readers import ReaderHandlers
from sskafka.servers.kafka.handlers.replica_positions import ReplicaPositionsHandler
from sskafka.servers.kafka.handlers.topic_partitions import TopicPartitionsHandler
from sskafka.servers.kafka.handlers.topics import TopicHandlers
from sskafka.servers.kafka.rare_apis import register_rare_broker_apis, register_rare_controller_apis
from sskafka.servers.kafka.registry import Registry
from sskafka.servers.kafka.topic_creation import TopicCreation
from sskafka.servers.kafka.transaction_services import TransactionServices
from sskafka.storage.log_manager import LogManager
from sskafka.wire.apis import ApiKey
from sskafka.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from sskafka.wire.messages.describe_cluster import DescribeClusterBroker

if TYPE_CHECKING:
    from sskafka.replication.replica_moves import ReplicaMoves

ALLOCATE_TIMEOUT_MS = 10_000


class BrokerServices(NamedTuple):
    """What a broker has that a mere controller has not."""

    logs: LogManager
    replicas: ReplicaManager
    timers: TimerWheel
    housekeeping: Housekeeping
    groups: GroupServices
    producer_ids: ProducerIds
    transactions: TransactionServices
    moves: "ReplicaMoves | None"
    """Of replicas between log directories, where there are several."""


def register_broker_apis(
    registry: Registry,
    services: BrokerServices,
    control: NodeControl,
    settings: Settings,
    clock: Clock,
    identity: BrokerIdentityHandler,
    cluster_id: str,
    listeners: ListenerPorts,
) -> None:
    controller, node_id = control.client, settings["node.id"]
    logs, replicas, timers, housekeeping, groups, producer_ids, transactions, moves = services
    view = ClusterView(cluster_id, lambda: control.image, lambda: _controller_for_clients(control))
    quorum = QuorumHandlers(controller)
    sessions = FetchSessions(settings["max.incremental.fetch.session.cache.slots"], random.randint)
    produce = ProduceHandler(replicas, clock, timers, view, transactions.transactional_produce)
    fetch = FetchHandler(
        replicas,
        sessions,
        clock,
        timers,
        settings["fetch.max.bytes"],
        view,
        settings["replica.selector.class"],
        quorum.fetch_metadata(registry),
    )
    registry.add(ApiKey.PRODUCE, produce.handle, advertised_min=0)  # older librdkafka compresses only then
    registry.add(ApiKey.FETCH, fetch.handle)
    registry.add(ApiKey.API_VERSIONS, ApiVersionsHandler(registry, view).handle)
    quorum.register(registry, is_advertised=False)
    identity.register(registry)
    ControllerHandlers(controller).register(registry, is_advertised=False)
    MetadataHandler(view, TopicCreation(controller, settings, registry.spawn)).register(registry)
    TopicPartitionsHandler(view, settings["max.request.partition.size.limit"]).register(registry)
    ClusterHandler(view).register(registry)
    TopicHandlers(controller).register(registry)
    ConfigHandlers(node_id, controller, settings, listeners).register(registry)
    administration = AdministrationHandlers(controller)
    administration.register(registry)
    ReplicaPositionsHandler(replicas, administration.forward).register(registry)
    OffsetHandlers(replicas).register(registry)
    DeleteRecordsHandler(replicas, housekeeping.keep_log_starts).register(registry)
    ProducerHandlers(replicas, producer_ids, transactions.initialize).register(registry)
    LogDirsHandler(logs, replicas, moves).register(registry)
    ReaderHandlers(replicas).register(registry)
    groups.register(registry, view, controller)
    transactions.register(registry)
    register_rare_broker_apis(registry, view, controller, settings)


def register_controller_apis(registry: Registry, control: NodeControl, settings: Settings, cluster_id: str) -> None:
    direct = control.direct
    view = ClusterView(cluster_id, lambda: direct.image, lambda: control.leader_id)
    quorum = QuorumHandlers(direct)
    registry.add(ApiKey.FETCH, quorum.fetch_metadata(registry))
    registry.add(ApiKey.API_VERSIONS, ApiVersionsHandler(registry, view).handle)
    quorum.register(registry, is_advertised=True)
    ControllerHandlers(direct).register(registry, is_advertised=True)
    AdministrationHandlers(direct).register(registry)
    TopicHandlers(direct).register(registry)
    ConfigHandlers(settings["node.id"], direct, settings, for_all_nodes=True).register(registry)
    ClusterHandler(view, lambda: _described(direct.voter_addresses)).register(registry)
    register_rare_controller_apis(registry, view, direct, settings)


async def allocate_producer_ids(control: NodeControl, broker_id: int) -> range:
    request = AllocateProducerIdsRequest(broker_id, control.broker_epoch)
    response = await control.client.ask(request, ALLOCATE_TIMEOUT_MS)
    if response.error_code != ErrorCode.NONE:
        raise KafkaError(ErrorCode(response.error_code), "no producer ids could be had from the controller")
    return range(response.producer_id_start, response.producer_id_start + response.producer_id_len)


def _controller_for_clients(control: NodeControl) -> int:
    """The active controller, or, where that is no broker, any broker: each passes on what only the former can do."""
    leader_id, image = control.leader_id, control.image
    if leader_id == NO_NODE or leader_id in image.brokers:
        return leader_id
    return min((broker.id for broker in image.active_brokers()), default=NO_NODE)


def _described(voters: Mapping[int, Address]) -> list[DescribeClusterBroker]:
    return [DescribeClusterBroker(node_id, address.host, address.port) for node_id, address in voters.items()]
