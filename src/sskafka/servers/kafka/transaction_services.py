"""Transactions on a broker: their coordinator and their API handlers, created on demand."""

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from sskafka.metadata.image import ClusterImage
from sskafka.model.counters import Sample
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.servers.kafka.group_services import GroupServices
from sskafka.servers.kafka.lazy_coordinator import CoordinatorResources, LazyCoordinator
from sskafka.servers.kafka.registry import HandlerFactories
from sskafka.servers.kafka.request import Request

if TYPE_CHECKING:
    from sskafka.client.broker_link import CallLater, Link, LinkTo
    from sskafka.coordination.transaction_service import TransactionService
    from sskafka.servers.kafka.handlers.transactional_produce import CarryOut, TransactionalProduce
    from sskafka.servers.kafka.handlers.transactions import TransactionHandlers
    from sskafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

STATE_TOPIC = "__transaction_state"


class TransactionDependencies(NamedTuple):
    """The parts of the broker that transactions use."""

    groups: GroupServices
    link_to: "LinkTo[Link]"
    call_later: "CallLater"
    image: Callable[[], ClusterImage]
    next_producer_id: Callable[[], Awaitable[int]]


class TransactionServices:
    def __init__(self, context: CoordinatorResources, dependencies: TransactionDependencies) -> None:
        self._context = context
        self._dependencies = dependencies
        self._handlers: TransactionHandlers | None = None
        self._lazy: LazyCoordinator[TransactionService] = LazyCoordinator(
            STATE_TOPIC, self._make, context.replicas.is_in_service
        )
        self.metadata_changed = self._lazy.metadata_changed
        self.stop = self._lazy.stop

    @property
    def service(self) -> "TransactionService":
        return self._lazy.service

    def _make(self) -> "TransactionService":
        from sskafka.client.broker_link import BrokerLinks  # noqa: PLC0415
        from sskafka.coordination.context import CoordinatorEnvironment  # noqa: PLC0415
        from sskafka.coordination.loading import LoadCounters, LoadingTurns  # noqa: PLC0415
        from sskafka.coordination.transaction_service import (  # noqa: PLC0415
            TransactionPorts,
            transaction_service,
        )

        replicas, settings, clock, wheel, background = self._context
        groups, link_to, call_later, image, next_producer_id = self._dependencies
        return transaction_service(
            replicas,
            groups.coordinator,
            settings,
            CoordinatorEnvironment(
                clock,
                wheel,
                background,
                settings["request.timeout.ms"],
                LoadingTurns(background),
                LoadCounters(),
                load_bytes=settings["transaction.state.log.load.buffer.size"],
            ),
            BrokerLinks(link_to),
            call_later,
            TransactionPorts(image, next_producer_id, lambda error: error_code_of(error)[0]),
        )

    def samples(self) -> Iterator[Sample]:
        service = self._lazy.if_needed
        return iter(()) if service is None else service.coordinator.samples()

    # -- the APIs

    def handler_factories(self) -> HandlerFactories:
        return {
            "transactions": self._coordinator_handlers,
            "transaction_markers": self._marker_handler,
            "transaction_descriptions": self._description_handlers,
            "transaction_offsets": self._offset_handler,
        }

    def _marker_handler(self) -> object:
        from sskafka.servers.kafka.handlers.transaction_markers import TransactionMarkerHandler  # noqa: PLC0415

        return TransactionMarkerHandler(self.service.writer)

    def _description_handlers(self) -> object:
        from sskafka.servers.kafka.handlers.transaction_descriptions import (  # noqa: PLC0415
            TransactionDescriptionHandlers,
        )

        return TransactionDescriptionHandlers(self.service.coordinator, self._context.clock)

    def _offset_handler(self) -> object:
        from sskafka.servers.kafka.handlers.transaction_offsets import TransactionOffsetHandler  # noqa: PLC0415

        groups, image = self._dependencies.groups.coordinator, self._dependencies.image
        return TransactionOffsetHandler(self._context.replicas, groups, self.service.verifier, image)

    def _coordinator_handlers(self) -> "TransactionHandlers":
        from sskafka.servers.kafka.handlers.transactions import TransactionHandlers  # noqa: PLC0415

        if self._handlers is None:
            image = self._dependencies.image
            self._handlers = TransactionHandlers(self.service.coordinator, image, self._offsets_partition)
        return self._handlers

    async def _offsets_partition(self, group_id: str) -> int | None:
        from sskafka.coordination.internal_topics import CONSUMER_OFFSETS, partition_of  # noqa: PLC0415

        topic = await self._dependencies.groups.find_topic(CONSUMER_OFFSETS)
        return None if topic is None else partition_of(group_id, len(topic.partitions))

    # -- what other handlers have to do with transactions

    async def initialize(self, message: "InitProducerIdRequest", request: Request) -> "InitProducerIdResponse":
        return await self._coordinator_handlers().initialize(message, request)

    def transactional_produce(self, carry_out: "CarryOut") -> "TransactionalProduce":
        from sskafka.servers.kafka.handlers.transactional_produce import (  # noqa: PLC0415
            RetryPauses,
            TransactionalProduce,
        )

        replicas, settings, _, wheel, _ = self._context
        pauses = RetryPauses(
            settings["add.partitions.to.txn.retry.backoff.ms"], settings["add.partitions.to.txn.retry.backoff.max.ms"]
        )
        return TransactionalProduce(replicas, self.service.verifier, wheel, pauses, carry_out)
