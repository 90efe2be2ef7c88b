"""InitProducerId, AllocateProducerIds, and DescribeProducers: the producers that write to a partition."""

import asyncio
from collections.abc import Awaitable, Callable

from sskafka.model.acl import AclOperation
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import topic_name_problem
from sskafka.records.batch import NO_PRODUCER_ID
from sskafka.records.builder import NO_PRODUCER_EPOCH
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.servers.kafka.request import Request
from sskafka.storage.producers.entry import ProducerEntry
from sskafka.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

CONTROLLER_AWAY = {
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.STALE_BROKER_EPOCH,
    ErrorCode.BROKER_ID_NOT_REGISTERED,
}
FIRST_EPOCH = 0
NOTHING = -1

InitializeTransactional = Callable[[InitProducerIdRequest, Request], Awaitable[InitProducerIdResponse]]
"""Handles requests with a transactional id."""

AllocateBlock = Callable[[], Awaitable[range]]
"""Allocates a block of unused producer ids at the controller."""


class ProducerIds:
    """Hands out ids of a block and allocates the next block when the current one is used up."""

    def __init__(self, allocate_block: AllocateBlock) -> None:
        self._allocate_block = allocate_block
        self._block = iter(range(0))
        self._allocating = asyncio.Lock()

    async def next_id(self) -> int:
        async with self._allocating:
            producer_id = next(self._block, None)
            if producer_id is None:
                self._block = iter(await self._next_block())
                producer_id = next(self._block)
            return producer_id

    async def _next_block(self) -> range:
        """Respond COORDINATOR_LOAD_IN_PROGRESS while there is no controller: all producers retry after this error."""
        try:
            return await self._allocate_block()
        except KafkaError as error:
            if error.code in CONTROLLER_AWAY:
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, error.message) from error
            raise


class ProducerHandlers:
    def __init__(
        self, replicas: ReplicaManager, producer_ids: ProducerIds, initialize_transactional: InitializeTransactional
    ) -> None:
        self._replicas = replicas
        self._producer_ids = producer_ids
        self._initialize_transactional = initialize_transactional

    async def init_producer_id(self, message: InitProducerIdRequest, request: Request) -> InitProducerIdResponse:
        """Give an idempotent producer a new id, even if it names an old one: its sequence numbers start again at 0."""
        if message.transactional_id is not None:
            return await self._initialize_transactional(message, request)
        if not request.may_on_some_topic(AclOperation.WRITE) and not request.may_on_cluster(
            AclOperation.IDEMPOTENT_WRITE
        ):
            return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        if (message.producer_id == NO_PRODUCER_ID) != (message.producer_epoch == NO_PRODUCER_EPOCH):
            return _refused(ErrorCode.INVALID_REQUEST)
        try:
            producer_id = await self._producer_ids.next_id()
        except Exception as error:  # the controller, which allocates ids, is not available
            return _refused(error_code_of(error)[0])
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=FIRST_EPOCH)

    def describe_producers(self, message: DescribeProducersRequest, request: Request) -> DescribeProducersResponse:
        return DescribeProducersResponse(
            topics=[
                TopicResponse(
                    topic.name, [self._describe(request, topic.name, index) for index in topic.partition_indexes]
                )
                for topic in message.topics
            ]
        )

    def _describe(self, request: Request, topic: str, index: int) -> PartitionResponse:
        """Return the producer state of this replica, leader or follower: followers keep that state, too."""
        if not request.may_on_topic(AclOperation.READ, topic):
            return PartitionResponse(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if (problem := topic_name_problem(topic)) is not None:
            return PartitionResponse(index, ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        try:
            partition = self._replicas.find(topic, index)
        except Exception as error:
            code, text = error_code_of(error)
            return PartitionResponse(index, code, text)
        return PartitionResponse(
            index, active_producers=[_state(entry) for entry in partition.producers.producers.values()]
        )


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=NO_PRODUCER_EPOCH)


def _state(entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        entry.producer_id,
        entry.producer_epoch,
        entry.batches[-1].last_sequence if entry.batches else NOTHING,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.transaction_first_offset,
    )
