"""The handlers of the Kafka APIs, by the family that rows of the API table (wire/apis.py) name.

Broker listeners are served on the data loop, controller listeners on the control loop. Each handler is constructed at
the first request for one of its APIs; those that most brokers never need are imported only then (`on_demand`).
"""

import random
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from sskafka.broker import on_demand
from sskafka.broker.services import BrokerServices
from sskafka.client.broker_link import Address
from sskafka.controller.node_control import NodeControl
from sskafka.coordination.internal_topics import CONSUMER_OFFSETS
from sskafka.model.settings import Settings
from sskafka.raft.voters import NO_NODE
from sskafka.runtime.clock import Clock
from sskafka.servers.kafka.client_quotas import UNLIMITED_MUTATIONS, MutationQuota
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.controller import Controller
from sskafka.servers.kafka.handlers.api_versions import ApiVersionsHandler
from sskafka.servers.kafka.handlers.fetch.handler import FetchHandler
from sskafka.servers.kafka.handlers.fetch.sessions import FetchSessions
from sskafka.servers.kafka.handlers.metadata import MetadataHandler
from sskafka.servers.kafka.handlers.produce import ProduceHandler
from sskafka.servers.kafka.handlers.producers import ProducerHandlers
from sskafka.servers.kafka.handlers.quorum import QuorumHandlers
from sskafka.servers.kafka.registry import HandlerFactories, Registry, message_handler
from sskafka.servers.kafka.request import Request
from sskafka.servers.kafka.topic_creation import InternalTopics, TopicCreation
from sskafka.wire.apis import API_BY_KEY, ApiKey, Listeners
from sskafka.wire.messages.describe_cluster import DescribeClusterBroker

if TYPE_CHECKING:
    from sskafka.servers.kafka.forwarded_requests import ForwardedHandlers
    from sskafka.servers.kafka.handlers.configs import ListenerPorts
    from sskafka.servers.kafka.handlers.transactional_produce import CarryOut
    from sskafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def serve_broker_apis(
    registry: Registry,
    services: BrokerServices,
    control: NodeControl,
    settings: Settings,
    clock: Clock,
    cluster_id: str,
    listeners: "ListenerPorts",
    others: HandlerFactories,
    mutations: MutationQuota = UNLIMITED_MUTATIONS,
) -> None:
    """Serve the APIs of broker listeners; `others` has the families that are constructed elsewhere."""
    controller, replicas, coordinators = control.client, services.replicas, services.coordinators
    view = ClusterView(cluster_id, lambda: control.image, lambda: _controller_for_clients(control))
    topics = InternalTopics(view, controller, settings, replicas.when_applied)

    @cache
    def transactions() -> "on_demand.TransactionHandlers":
        return on_demand.TransactionHandlers(
            coordinators.transactions(),
            lambda: view.image,
            lambda group_id: topics.partition_of(CONSUMER_OFFSETS, group_id),
        )

    async def initialize(message: "InitProducerIdRequest", request: Request) -> "InitProducerIdResponse":
        return await transactions().initialize(message, request)

    factories: HandlerFactories = {
        **_common_handlers(registry, view, control.client, settings, Listeners.BROKER, mutations),
        "produce": lambda: _produce_handler(services, settings, clock, view),
        "fetch": lambda: _fetch_handler(registry, services, control, settings, clock, view),
        "controller_apis": lambda: on_demand.ControllerHandlers(
            controller, forwarded_handlers(settings, mutations), mutations
        ),
        "quorum": lambda: QuorumHandlers(controller),
        "describe_quorum": lambda: on_demand.ReplicaPositionsHandler(
            replicas, on_demand.AdministrationHandlers(controller).forward
        ),
        "configs": lambda: on_demand.ConfigHandlers(settings["node.id"], controller, settings, listeners),
        "cluster": lambda: on_demand.ClusterHandler(view),
        "metadata": lambda: MetadataHandler(view, TopicCreation(controller, settings, registry.spawn)),
        "topic_partitions": lambda: on_demand.TopicPartitionsHandler(
            view, settings["max.request.partition.size.limit"]
        ),
        "offsets": lambda: on_demand.OffsetHandlers(replicas, services.thread),
        "delete_records": lambda: on_demand.DeleteRecordsHandler(
            replicas, services.housekeeping.sync_log_start_offsets
        ),
        "producers": lambda: ProducerHandlers(replicas, services.producer_ids, initialize),
        "log_dirs": lambda: on_demand.LogDirsHandler(services.logs, replicas, services.moves),
        "absent_features": lambda: on_demand.absent_features,
        "readers": lambda: on_demand.ReaderHandlers(replicas),
        "act_for_client": lambda: on_demand.ActForClientHandler(),  # noqa: PLW0108  imported when it is called
        "config_resources": lambda: on_demand.ConfigResourcesHandler(view),
        "find_coordinator": lambda: on_demand.FindCoordinatorHandler(view, topics),
        **_coordinator_handlers(services, settings, clock, view),
        "transactions": transactions,
        **others,
    }
    registry.serve(Listeners.BROKER | Listeners.UNLISTED, factories)


def _produce_handler(services: BrokerServices, settings: Settings, clock: Clock, view: ClusterView) -> ProduceHandler:
    replicas, timers = services.replicas, services.timers

    def transactional_produce(carry_out: "CarryOut") -> "on_demand.TransactionalProduce":
        pauses = on_demand.RetryPauses(
            settings["add.partitions.to.txn.retry.backoff.ms"], settings["add.partitions.to.txn.retry.backoff.max.ms"]
        )
        return on_demand.TransactionalProduce(replicas, services.coordinators.verifier, timers, pauses, carry_out)

    return ProduceHandler(
        replicas,
        clock,
        timers,
        view,
        transactional_produce,
        services.thread,
        lambda topic, batch: on_demand.check_internal_records(topic, batch),  # noqa: PLW0108  imported when it is called
    )


def _coordinator_handlers(
    services: BrokerServices, settings: Settings, clock: Clock, view: ClusterView
) -> HandlerFactories:
    """Return the handlers of groups and transactions, except those that InitProducerId needs too."""
    coordinators = services.coordinators
    groups = coordinators.groups
    return {
        "groups": lambda: on_demand.GroupHandlers(groups()),
        "consumer_groups": lambda: on_demand.ConsumerGroupHandlers(
            groups(), view, "consumer" in settings["group.coordinator.rebalance.protocols"]
        ),
        "group_offsets": lambda: on_demand.GroupOffsetHandlers(groups(), view),
        "transaction_markers": lambda: on_demand.TransactionMarkerHandler(coordinators.marker_writer),
        "transaction_descriptions": lambda: on_demand.TransactionDescriptionHandlers(
            coordinators.transactions(), clock
        ),
        "transaction_offsets": lambda: on_demand.TransactionOffsetHandler(
            services.replicas, groups(), coordinators.verifier, lambda: view.image
        ),
    }


def serve_controller_apis(
    registry: Registry,
    control: NodeControl,
    settings: Settings,
    cluster_id: str,
    mutations: MutationQuota = UNLIMITED_MUTATIONS,
) -> None:
    direct = control.direct
    view = ClusterView(cluster_id, lambda: direct.image, lambda: control.leader_id)
    factories: HandlerFactories = {
        **_common_handlers(registry, view, direct, settings, Listeners.CONTROLLER, mutations),
        "fetch": lambda: QuorumHandlers(direct),
        "controller_apis": lambda: on_demand.ControllerHandlers(
            direct, forwarded_handlers(settings, mutations), mutations
        ),
        "quorum": lambda: QuorumHandlers(direct),
        "describe_quorum": lambda: on_demand.AdministrationHandlers(direct),
        "configs": lambda: on_demand.ConfigHandlers(settings["node.id"], direct, settings, for_all_nodes=True),
        "cluster": lambda: on_demand.ClusterHandler(view, lambda: _described(direct.voter_addresses)),
    }
    registry.serve(Listeners.CONTROLLER, factories)


def _common_handlers(
    registry: Registry,
    view: ClusterView,
    controller: Controller,
    settings: Settings,
    listeners: Listeners,
    mutations: MutationQuota,
) -> HandlerFactories:
    """Return the families that broker listeners and controller listeners have in common."""
    first, *_ = (*settings.controller_listeners, *settings.listeners)
    return {
        **_administration(controller, settings, mutations),
        "api_versions": lambda: ApiVersionsHandler(registry, view, listeners),
        "sasl": lambda: on_demand.sasl,
        "raft_voters": lambda: on_demand.RaftVoterHandlers(view, first.name),
    }


def _administration(controller: Controller, settings: Settings, mutations: MutationQuota) -> HandlerFactories:
    """Return the families of APIs with which clients change the metadata."""
    return {
        "acls": lambda: on_demand.AclHandlers(controller),
        "administration": lambda: on_demand.AdministrationHandlers(controller),
        "topics": lambda: on_demand.TopicHandlers(controller, mutations, settings["num.partitions"]),
        "client_quotas": lambda: on_demand.ClientQuotaHandlers(controller),
        "scram_credentials": lambda: on_demand.ScramCredentialHandlers(controller),
        "delegation_tokens": lambda: on_demand.DelegationTokenHandlers(
            controller, settings["delegation.token.secret.key"]
        ),
    }


def forwarded_handlers(settings: Settings, mutations: MutationQuota) -> "ForwardedHandlers":
    """Return what constructs the handlers of APIs that other brokers forward to this node."""
    return lambda controller: {
        **_administration(controller, settings, mutations),
        "describe_quorum": lambda: on_demand.AdministrationHandlers(controller),
        "configs": lambda: on_demand.ConfigHandlers(settings["node.id"], controller, settings, for_all_nodes=True),
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


def _controller_for_clients(control: NodeControl) -> int:
    """Return the active controller or, if that node is not a broker, any broker: brokers forward requests to it."""
    leader_id, image = control.leader_id, control.image
    if leader_id == NO_NODE or leader_id in image.brokers:
        return leader_id
    return min((broker.id for broker in image.active_brokers()), default=NO_NODE)


def _described(voters: Mapping[int, Address]) -> list[DescribeClusterBroker]:
    return [DescribeClusterBroker(node_id, address.host, address.port) for node_id, address in voters.items()]
