"""The handlers of the Kafka APIs, by the family that rows of the API table (wire/apis.py) name.

Broker listeners are served on the data loop, controller listeners on the control loop. Each handler is constructed at
the first request for one of its APIs; those that most brokers never need are imported only then.
"""

import random
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from sskafka.client.connection import Address
from sskafka.controller.node_control import NodeControl
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.settings import Settings
from sskafka.raft.voters import NO_NODE
from sskafka.replication.housekeeping import Housekeeping
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.clock import Clock
from sskafka.runtime.timer_wheel import TimerWheel
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.controller import Controller
from sskafka.servers.kafka.group_services import GroupServices
from sskafka.servers.kafka.handlers.administration import AdministrationHandlers
from sskafka.servers.kafka.handlers.api_versions import ApiVersionsHandler
from sskafka.servers.kafka.handlers.cluster import ClusterHandler
from sskafka.servers.kafka.handlers.configs import ConfigHandlers, ListenerPorts
from sskafka.servers.kafka.handlers.controller_apis import ControllerHandlers
from sskafka.servers.kafka.handlers.delete_records import DeleteRecordsHandler
from sskafka.servers.kafka.handlers.fetch.handler import FetchHandler
from sskafka.servers.kafka.handlers.fetch.sessions import FetchSessions
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
from sskafka.servers.kafka.registry import HandlerFactories, Registry, message_handler
from sskafka.servers.kafka.topic_creation import TopicCreation
from sskafka.servers.kafka.transaction_services import TransactionServices
from sskafka.storage.log_manager import LogManager
from sskafka.wire.apis import API_BY_KEY, ApiKey, Listeners
from sskafka.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from sskafka.wire.messages.describe_cluster import DescribeClusterBroker

if TYPE_CHECKING:
    from sskafka.replication.replica_moves import ReplicaMoves
    from sskafka.servers.kafka.handlers.client_quotas import ClientQuotaHandlers
    from sskafka.servers.kafka.handlers.config_resources import ConfigResourcesHandler
    from sskafka.servers.kafka.handlers.raft_voters import RaftVoterHandlers
    from sskafka.servers.kafka.handlers.scram_credentials import ScramCredentialHandlers

ALLOCATE_TIMEOUT_MS = 10_000


class BrokerServices(NamedTuple):
    """What a broker has and a node that is only a controller has not."""

    logs: LogManager
    replicas: ReplicaManager
    timers: TimerWheel
    housekeeping: Housekeeping
    groups: GroupServices
    producer_ids: ProducerIds
    transactions: TransactionServices
    moves: "ReplicaMoves | None"
    """Of replicas between log directories, where there are several."""


def serve_broker_apis(
    registry: Registry,
    services: BrokerServices,
    control: NodeControl,
    settings: Settings,
    clock: Clock,
    cluster_id: str,
    listeners: ListenerPorts,
    others: HandlerFactories,
) -> None:
    """Serve the APIs of broker listeners; `others` has the families that are constructed elsewhere."""
    controller = control.client
    logs, replicas, _, housekeeping, groups, producer_ids, transactions, moves = services
    view = ClusterView(cluster_id, lambda: control.image, lambda: _controller_for_clients(control))
    factories: HandlerFactories = {
        **_common_handlers(registry, view, control.client, settings, Listeners.BROKER),
        "produce": lambda: ProduceHandler(replicas, clock, services.timers, view, transactions.transactional_produce),
        "fetch": lambda: _fetch_handler(registry, services, control, settings, clock, view),
        "controller_apis": lambda: ControllerHandlers(controller),
        "quorum": lambda: QuorumHandlers(controller),
        "describe_quorum": lambda: ReplicaPositionsHandler(replicas, AdministrationHandlers(controller).forward),
        "configs": lambda: ConfigHandlers(settings["node.id"], controller, settings, listeners),
        "cluster": lambda: ClusterHandler(view),
        "metadata": lambda: MetadataHandler(view, TopicCreation(controller, settings, registry.spawn)),
        "topic_partitions": lambda: TopicPartitionsHandler(view, settings["max.request.partition.size.limit"]),
        "offsets": lambda: OffsetHandlers(replicas),
        "delete_records": lambda: DeleteRecordsHandler(replicas, housekeeping.keep_log_starts),
        "producers": lambda: ProducerHandlers(replicas, producer_ids, transactions.initialize),
        "log_dirs": lambda: LogDirsHandler(logs, replicas, moves),
        "readers": lambda: ReaderHandlers(replicas),
        "config_resources": lambda: _config_resources(view),
        **groups.handler_factories(view, controller),
        **transactions.handler_factories(),
        **others,
    }
    registry.serve(Listeners.BROKER | Listeners.UNLISTED, factories)


def serve_controller_apis(registry: Registry, control: NodeControl, settings: Settings, cluster_id: str) -> None:
    direct = control.direct
    view = ClusterView(cluster_id, lambda: direct.image, lambda: control.leader_id)
    factories: HandlerFactories = {
        **_common_handlers(registry, view, direct, settings, Listeners.CONTROLLER),
        "fetch": lambda: QuorumHandlers(direct),
        "controller_apis": lambda: ControllerHandlers(direct),
        "quorum": lambda: QuorumHandlers(direct),
        "describe_quorum": lambda: AdministrationHandlers(direct),
        "configs": lambda: ConfigHandlers(settings["node.id"], direct, settings, for_all_nodes=True),
        "cluster": lambda: ClusterHandler(view, lambda: _described(direct.voter_addresses)),
    }
    registry.serve(Listeners.CONTROLLER, factories)


def _common_handlers(
    registry: Registry, view: ClusterView, controller: Controller, settings: Settings, listeners: Listeners
) -> HandlerFactories:
    """Return the families that brokers and controllers construct alike."""
    first, *_ = (*settings.controller_listeners, *settings.listeners)
    return {
        "api_versions": lambda: ApiVersionsHandler(registry, view, listeners),
        "administration": lambda: AdministrationHandlers(controller),
        "topics": lambda: TopicHandlers(controller),
        "absent_features": _absent_features,
        "client_quotas": lambda: _client_quotas(controller),
        "scram_credentials": lambda: _scram_credentials(controller),
        "raft_voters": lambda: _raft_voters(view, first.name),
    }


def _fetch_handler(
    registry: Registry,
    services: BrokerServices,
    control: NodeControl,
    settings: Settings,
    clock: Clock,
    view: ClusterView,
) -> FetchHandler:
    fetch_metadata = message_handler(API_BY_KEY[ApiKey.FETCH], QuorumHandlers(control.client).handle, registry.spawn)
    return FetchHandler(
        services.replicas,
        FetchSessions(settings["max.incremental.fetch.session.cache.slots"], random.randint),
        clock,
        services.timers,
        settings["fetch.max.bytes"],
        view,
        settings["replica.selector.class"],
        fetch_metadata,
    )


async def allocate_producer_ids(control: NodeControl, broker_id: int) -> range:
    request = AllocateProducerIdsRequest(broker_id, control.broker_epoch)
    response = await control.client.ask(request, ALLOCATE_TIMEOUT_MS)
    if response.error_code != ErrorCode.NONE:
        raise KafkaError(ErrorCode(response.error_code), "no producer ids could be had from the controller")
    return range(response.producer_id_start, response.producer_id_start + response.producer_id_len)


def _controller_for_clients(control: NodeControl) -> int:
    """Return the active controller or, where that is no broker, any broker: each forwards what only it can do."""
    leader_id, image = control.leader_id, control.image
    if leader_id == NO_NODE or leader_id in image.brokers:
        return leader_id
    return min((broker.id for broker in image.active_brokers()), default=NO_NODE)


def _described(voters: Mapping[int, Address]) -> list[DescribeClusterBroker]:
    return [DescribeClusterBroker(node_id, address.host, address.port) for node_id, address in voters.items()]


# -- handlers that are imported at their first request


def _absent_features() -> ModuleType:
    from sskafka.servers.kafka.handlers import absent_features  # noqa: PLC0415

    return absent_features


def _client_quotas(controller: Controller) -> "ClientQuotaHandlers":
    from sskafka.servers.kafka.handlers.client_quotas import ClientQuotaHandlers  # noqa: PLC0415

    return ClientQuotaHandlers(controller)


def _scram_credentials(controller: Controller) -> "ScramCredentialHandlers":
    from sskafka.servers.kafka.handlers.scram_credentials import ScramCredentialHandlers  # noqa: PLC0415

    return ScramCredentialHandlers(controller)


def _raft_voters(view: ClusterView, listener_name: str) -> "RaftVoterHandlers":
    from sskafka.servers.kafka.handlers.raft_voters import RaftVoterHandlers  # noqa: PLC0415

    return RaftVoterHandlers(view, listener_name)


def _config_resources(view: ClusterView) -> "ConfigResourcesHandler":
    from sskafka.servers.kafka.handlers.config_resources import ConfigResourcesHandler  # noqa: PLC0415

    return ConfigResourcesHandler(view)
