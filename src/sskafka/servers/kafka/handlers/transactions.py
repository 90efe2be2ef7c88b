"""InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn and EndTxn, at the transaction coordinator.

Older clients do not know some error codes and get similar ones: INVALID_PRODUCER_EPOCH for PRODUCER_FENCED,
INVALID_TXN_STATE for TRANSACTION_ABORTABLE.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from sskafka.coordination.internal_topics import CONSUMER_OFFSETS
from sskafka.coordination.transaction_coordinator import TransactionCoordinator
from sskafka.metadata.image import ClusterImage
from sskafka.model.acl import AclOperation
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import INTERNAL_TOPICS, ProducerIdAndEpoch, TopicPartition
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.servers.kafka.request import Request
from sskafka.transactions.end_txn import EndTxn
from sskafka.transactions.init_producer_id import InitProducerId
from sskafka.transactions.metadata import BUMPING_VERSION, FIRST_VERSION, NOBODY, TransactionState
from sskafka.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from sskafka.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from sskafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FENCED_KNOWN_FROM = 2
"""The first version of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn whose clients know PRODUCER_FENCED."""
FENCED_KNOWN_TO_INIT_FROM = 4
BROKERS_ASK_FROM = 4
ABORTABLE_KNOWN_FROM = 5
BUMPING_FROM = 5
"""The first version of AddPartitionsToTxn and EndTxn with a new producer epoch for every transaction (KIP-890)."""

Outcome = dict[TopicPartition, ErrorCode]


class TransactionHandlers:
    """`offsets_partition`: the partition of `__consumer_offsets` for a group; None if that topic cannot be created."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        image: Callable[[], ClusterImage],
        offsets_partition: Callable[[str], Awaitable[int | None]],
    ) -> None:
        self._coordinator = coordinator
        self._image = image
        self._offsets_partition = offsets_partition

    # -- InitProducerId with a transactional id

    async def initialize(self, message: InitProducerIdRequest, request: Request) -> InitProducerIdResponse:
        assert message.transactional_id is not None
        if not _may_initialize(message, request):
            code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            return InitProducerIdResponse(error_code=code, producer_epoch=-1)
        expected = ProducerIdAndEpoch(message.producer_id, message.producer_epoch)
        requested = InitProducerId(
            message.transactional_id,
            message.transaction_timeout_ms,
            expected,
            two_phase=message.enable2_pc,
            keep_prepared=message.keep_prepared_txn,
        )
        try:
            verdict = await self._coordinator.init_producer_id(requested)
        except Exception as error:
            return InitProducerIdResponse(error_code=error_code_of(error)[0], producer_epoch=-1)
        if verdict.error is not ErrorCode.NONE:
            code = _known_to(request.version, FENCED_KNOWN_TO_INIT_FROM, verdict.error)
            return InitProducerIdResponse(error_code=code, producer_epoch=-1)
        changed = verdict.changed
        ongoing = changed.identity if changed is not None and changed.state is TransactionState.ONGOING else NOBODY
        return InitProducerIdResponse(0, ErrorCode.NONE, *verdict.identity, *ongoing)

    # -- AddPartitionsToTxn

    async def add_partitions(self, message: AddPartitionsToTxnRequest, request: Request) -> AddPartitionsToTxnResponse:
        if request.version < BROKERS_ASK_FROM:
            return await self._add_for_client(message, request)
        if not request.may_on_cluster(AclOperation.CLUSTER_ACTION):
            return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        results = await asyncio.gather(*(self._answer_leader(item, request) for item in message.transactions))
        return AddPartitionsToTxnResponse(results_by_transaction=list(results))

    async def _add_for_client(self, message: AddPartitionsToTxnRequest, request: Request) -> AddPartitionsToTxnResponse:
        transactional_id = message.v3_and_below_transactional_id
        partitions = _flat(message.v3_and_below_topics)
        outcome = self._refused(transactional_id, partitions, request)
        if not outcome:
            producer = ProducerIdAndEpoch(message.v3_and_below_producer_id, message.v3_and_below_producer_epoch)
            error = await self._add(transactional_id, producer, partitions, request.version)
            outcome = dict.fromkeys(partitions, error)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_by_topic(outcome))

    def _refused(self, transactional_id: str, partitions: list[TopicPartition], request: Request) -> Outcome:
        """Return the errors of partitions that cannot be added. If there is one, no partition is added."""
        if not request.may_on_transactional_id(AclOperation.WRITE, transactional_id):
            return dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        image = self._image()
        refused: Outcome = {}
        for item in partitions:
            if item.topic in INTERNAL_TOPICS or not request.may_on_topic(AclOperation.WRITE, item.topic):
                refused[item] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif image.partition(*item) is None:
                refused[item] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not refused:
            return {}
        return dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused

    async def _answer_leader(
        self, requested: AddPartitionsToTxnTransaction, request: Request
    ) -> AddPartitionsToTxnResult:
        partitions = _flat(requested.topics)
        unknown = [item for item in partitions if self._image().partition(*item) is None]
        if unknown:
            refused = dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
            refused |= dict.fromkeys(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return AddPartitionsToTxnResult(requested.transactional_id, _by_topic(refused))
        producer = ProducerIdAndEpoch(requested.producer_id, requested.producer_epoch)
        answered: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        if requested.verify_only or request.version >= BUMPING_FROM:
            self._coordinator.answer_leader(
                requested.transactional_id, producer, partitions, not requested.verify_only, answered.set_result
            )
            outcome = await answered
        else:
            error = await self._add(requested.transactional_id, producer, partitions, request.version)
            outcome = dict.fromkeys(partitions, error)
        known = {item: _known_to_leader(request.version, error) for item, error in outcome.items()}
        return AddPartitionsToTxnResult(requested.transactional_id, _by_topic(known))

    async def _add(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: list[TopicPartition], version: int
    ) -> ErrorCode:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        try:
            verdict = await self._coordinator.add_partitions(transactional_id, producer, partitions, FIRST_VERSION)
        except Exception as error:
            return error_code_of(error)[0]
        return _known_to(version, FENCED_KNOWN_FROM, verdict.error)

    # -- AddOffsetsToTxn

    async def add_offsets(self, message: AddOffsetsToTxnRequest, request: Request) -> AddOffsetsToTxnResponse:
        transactional_id = message.transactional_id
        if not request.may_on_transactional_id(AclOperation.WRITE, transactional_id):
            return AddOffsetsToTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if not request.may_on_group(AclOperation.READ, message.group_id):
            return AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        index = await self._offsets_partition(message.group_id)
        if index is None:  # a partition that is unknown when the transaction ends would get no marker
            return AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        partition = TopicPartition(CONSUMER_OFFSETS, index)
        producer = ProducerIdAndEpoch(message.producer_id, message.producer_epoch)
        return AddOffsetsToTxnResponse(
            error_code=await self._add(transactional_id, producer, [partition], request.version)
        )

    # -- EndTxn

    async def end(self, message: EndTxnRequest, request: Request) -> EndTxnResponse:
        transactional_id = message.transactional_id
        if not request.may_on_transactional_id(AclOperation.WRITE, transactional_id):
            return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if not transactional_id:
            return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
        producer = ProducerIdAndEpoch(message.producer_id, message.producer_epoch)
        version = BUMPING_VERSION if request.version >= BUMPING_FROM else FIRST_VERSION
        try:
            verdict = await self._coordinator.end_txn(transactional_id, EndTxn(producer, message.committed, version))
        except Exception as error:
            return EndTxnResponse(error_code=error_code_of(error)[0])
        if verdict.error is not ErrorCode.NONE:
            return EndTxnResponse(error_code=_known_to(request.version, FENCED_KNOWN_FROM, verdict.error))
        return EndTxnResponse(0, ErrorCode.NONE, *verdict.identity)


def _may_initialize(message: InitProducerIdRequest, request: Request) -> bool:
    transactional_id = message.transactional_id or ""
    if not request.may_on_transactional_id(AclOperation.WRITE, transactional_id):
        return False
    return not message.enable2_pc or request.may_on_transactional_id(AclOperation.TWO_PHASE_COMMIT, transactional_id)


def _known_to(version: int, fenced_known_from: int, error: ErrorCode) -> ErrorCode:
    if error is ErrorCode.PRODUCER_FENCED and version < fenced_known_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def _known_to_leader(version: int, error: ErrorCode) -> ErrorCode:
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_KNOWN_FROM:
        return ErrorCode.INVALID_TXN_STATE
    return error


def _flat(topics: Iterable[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]


def _by_topic(outcome: Outcome) -> list[AddPartitionsToTxnTopicResult]:
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (topic, index), error in outcome.items():
        results = topics.setdefault(topic, AddPartitionsToTxnTopicResult(topic)).results_by_partition
        results.append(AddPartitionsToTxnPartitionResult(index, error))
    return list(topics.values())
