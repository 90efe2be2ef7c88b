"""A cluster of one broker in memory, for the real client in virtual time: what happens to each request is scripted.

`fate` decides for each request how long it and its answer are on the way, whether either is lost, and whether the
broker refuses it or fails after it has carried it out. The decisions about sequences and transactions are those of the
real broker; markers are written at once.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple, cast

from virtual_loop import LoopClock

from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig
from sskafka.client.connection import Address, BrokerConnection, ConnectionOptions
from sskafka.client.errors import ConnectionLostError
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.records.batch import TRANSACTIONAL, BatchHeader, read_header
from sskafka.records.record import decode_records
from sskafka.storage.errors import InvalidProducerEpochError, OutOfOrderSequenceError
from sskafka.storage.producers.entry import ProducerEntry
from sskafka.transactions import add_partitions, end_txn, init_producer_id
from sskafka.transactions.end_txn import EndTxn
from sskafka.transactions.init_producer_id import InitProducerId
from sskafka.transactions.metadata import (
    BUMPING_VERSION,
    FIRST_VERSION,
    TransactionMetadata,
    TransactionResult,
    TransactionState,
    completed,
)
from sskafka.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from sskafka.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from sskafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from sskafka.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from sskafka.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from sskafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

ADDRESS = Address("broker", 9092)
OFFSETS = TopicPartition("__consumer_offsets", 0)
TOPIC_ID = b"t" * 16
FIRST_END_VERSION_MAX = 4
FIRST_OFFSETS_VERSION_MAX = 4
FIRST_PRODUCE_VERSION_MAX = 11
FIRST_PRODUCE_VERSION_WITH_IDS = 13


class Fate(NamedTuple):
    to_broker_ms: float = 1
    to_client_ms: float = 1
    is_request_lost: bool = False
    late_ms: float | None = None
    """The broker carries the lost request out after all, this long after the client lost its connection."""
    is_answer_lost: bool = False
    refusal: ErrorCode = ErrorCode.NONE
    """The broker does not carry the request out and answers this."""
    failure: ErrorCode = ErrorCode.NONE
    """The broker carries the request out and answers this. For these two: Produce and coordinators only."""


class Stored(NamedTuple):
    value: bytes
    header: BatchHeader


class ScriptedCluster:
    def __init__(self, partitions: int = 1, *, bumps_epochs: bool = True) -> None:
        self.partitions = [TopicPartition("t", number) for number in range(partitions)]
        self.bumps_epochs = bumps_epochs
        self.fate: Callable[[Any], Fate] = lambda _: Fate()
        self.is_behind: Callable[[], bool] = lambda: False
        """Whether the broker answers a Metadata request without the topic."""
        self.requests: list[Any] = []
        self.logs: dict[TopicPartition, list[Stored]] = {partition: [] for partition in self.partitions}
        self.attempts: list[BatchHeader] = []
        self.ended: dict[tuple[TopicPartition, int], bool] = {}
        """Outcome of transactional records, by partition and offset."""
        self.transactions: dict[str, TransactionMetadata] = {}
        self.offsets: dict[str, int] = {}
        """Committed offset of each group."""
        self.pending_offsets: dict[str, tuple[int, int]] = {}
        """Producer id and offset that wait for the end of its transaction."""
        self._producers: dict[tuple[TopicPartition, int], ProducerEntry] = {}
        self._producer_ids = iter(range(100, 10_000))

    def client(self, random: Random | None = None, **properties: int) -> Cluster:
        config = ConnectionConfig(**properties)  # type: ignore[arg-type]
        chance = random or Random(0)
        return Cluster([ADDRESS], config, clock=LoopClock(), randomness=chance, connector=self._connect)

    async def _connect(self, address: Address, options: ConnectionOptions) -> BrokerConnection:
        return cast("BrokerConnection", ScriptedConnection(self))

    def values(self, number: int = 0) -> list[bytes]:
        return [stored.value for stored in self.logs[self.partitions[number]]]

    def committed(self, number: int = 0) -> list[bytes]:
        """Return the values that read_committed consumers of the partition see."""
        partition = self.partitions[number]
        return [stored.value for at, stored in enumerate(self.logs[partition]) if self.ended.get((partition, at))]

    # Requests

    def answer(self, request: Any, version: int, fate: Fate) -> Any:
        match request:
            case MetadataRequest():
                return self._metadata(request)
            case FindCoordinatorRequest():
                return FindCoordinatorResponse(node_id=1, host=ADDRESS.host, port=ADDRESS.port)
            case ProduceRequest():
                return self._produce(request, version, fate)
            case InitProducerIdRequest():
                answer = self._init_producer_id(request, fate)
                return InitProducerIdResponse(0, answer.error, *answer.identity)
            case AddPartitionsToTxnRequest():
                return self._add_partitions(request, fate)
            case AddOffsetsToTxnRequest():
                error = fate.refusal or self._add(request.transactional_id, _producer(request), OFFSETS, FIRST_VERSION)
                return AddOffsetsToTxnResponse(0, fate.failure or error)
            case TxnOffsetCommitRequest():
                return self._commit_offsets(request, version, fate)
            case EndTxnRequest():
                answer = self._end(request, version, fate)
                return EndTxnResponse(0, answer.error, *answer.identity)
        raise AssertionError(request)

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        names = ["t"] if request.topics is None else [topic.name for topic in request.topics]
        partitions = [
            MetadataResponsePartition(partition_index=number, leader_id=1, replica_nodes=[1], isr_nodes=[1])
            for number in range(len(self.partitions))
        ]
        known = [MetadataResponseTopic(name=name, topic_id=TOPIC_ID, partitions=partitions) for name in names]
        unknown = [MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name) for name in names]
        broker = MetadataResponseBroker(node_id=1, host=ADDRESS.host, port=ADDRESS.port)
        return MetadataResponse(brokers=[broker], controller_id=1, topics=unknown if self.is_behind() else known)

    def _produce(self, request: ProduceRequest, version: int, fate: Fate) -> ProduceResponse:
        responses = []
        for topic in request.topic_data:
            answers = []
            for data in topic.partition_data:
                assert data.records is not None
                header = read_header(data.records)
                self.attempts.append(header)
                partition = TopicPartition("t", data.index)
                is_unknown = version >= FIRST_PRODUCE_VERSION_WITH_IDS and topic.topic_id != TOPIC_ID
                unknown = ErrorCode.UNKNOWN_TOPIC_ID if is_unknown else ErrorCode.NONE
                refusal = fate.refusal or unknown or self._verified(request, partition, header, version)
                values = [record.value or b"" for record in decode_records(data.records, header)]
                error, offset = (refusal, -1) if refusal else self._append(partition, header, values)
                answers.append(PartitionProduceResponse(data.index, fate.failure or error, offset))
            responses.append(TopicProduceResponse(topic.name, topic.topic_id, partition_responses=answers))
        return ProduceResponse(responses)

    def _verified(
        self, request: ProduceRequest, partition: TopicPartition, header: BatchHeader, version: int
    ) -> ErrorCode:
        if not header.attributes & TRANSACTIONAL:
            return ErrorCode.NONE
        name, producer = request.transactional_id or "", ProducerIdAndEpoch(header.producer_id, header.producer_epoch)
        if version > FIRST_PRODUCE_VERSION_MAX:
            return self._add(name, producer, partition, BUMPING_VERSION)
        return add_partitions.verify(self.transactions.get(name), producer, partition)

    def _append(self, partition: TopicPartition, header: BatchHeader, values: list[bytes]) -> tuple[ErrorCode, int]:
        log = self.logs[partition]
        entry = self._entry(partition, header.producer_id)
        if header.producer_id >= 0:
            duplicate = entry.duplicate_of(header)
            if duplicate is not None:
                return ErrorCode.NONE, duplicate.first_offset
            try:
                entry.check(header)
            except InvalidProducerEpochError:
                return ErrorCode.INVALID_PRODUCER_EPOCH, -1
            except OutOfOrderSequenceError:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            entry.add(header, len(log), 0)
        log += [Stored(value, header) for value in values]
        return ErrorCode.NONE, len(log) - len(values)

    def _entry(self, partition: TopicPartition, producer_id: int) -> ProducerEntry:
        return self._producers.setdefault((partition, producer_id), ProducerEntry(producer_id))

    def _init_producer_id(self, request: InitProducerIdRequest, fate: Fate) -> TransactionResult:
        spare_id = next(self._producer_ids)
        if fate.refusal:
            return TransactionResult(fate.refusal)
        if request.transactional_id is None:
            return TransactionResult(fate.failure, identity=ProducerIdAndEpoch(spare_id, 0))
        wanted = InitProducerId(request.transactional_id, request.transaction_timeout_ms, _producer(request))
        known = self.transactions.get(request.transactional_id)
        return self._decided(
            request.transactional_id, init_producer_id.decide(known, wanted, spare_id, self._now_ms()), fate
        )

    def _add_partitions(self, request: AddPartitionsToTxnRequest, fate: Fate) -> AddPartitionsToTxnResponse:
        name = request.v3_and_below_transactional_id
        producer = ProducerIdAndEpoch(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        results = []
        for topic in request.v3_and_below_topics:
            found = []
            for number in topic.partitions:
                error = fate.refusal or self._add(name, producer, TopicPartition("t", number), FIRST_VERSION)
                found.append(AddPartitionsToTxnPartitionResult(number, fate.failure or error))
            results.append(AddPartitionsToTxnTopicResult(topic.name, found))
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)

    def _add(self, name: str, producer: ProducerIdAndEpoch, partition: TopicPartition, version: int) -> ErrorCode:
        verdict = add_partitions.decide(self.transactions.get(name), producer, [partition], version, self._now_ms())
        return self._decided(name, verdict, Fate()).error

    def _commit_offsets(self, request: TxnOffsetCommitRequest, version: int, fate: Fate) -> TxnOffsetCommitResponse:
        name, producer = request.transactional_id, _producer(request)
        if fate.refusal:
            error = fate.refusal
        elif version > FIRST_OFFSETS_VERSION_MAX:
            error = self._add(name, producer, OFFSETS, BUMPING_VERSION)
        else:
            error = add_partitions.verify(self.transactions.get(name), producer, OFFSETS)
        topics = []
        for topic in request.topics:
            for item in topic.partitions:
                if not error:
                    self.pending_offsets[request.group_id] = (producer.producer_id, item.committed_offset)
            answers = [
                TxnOffsetCommitResponsePartition(item.partition_index, fate.failure or error)
                for item in topic.partitions
            ]
            topics.append(TxnOffsetCommitResponseTopic(topic.name, answers))
        return TxnOffsetCommitResponse(topics=topics)

    def _end(self, request: EndTxnRequest, version: int, fate: Fate) -> TransactionResult:
        if fate.refusal:
            return TransactionResult(fate.refusal)
        client_version = BUMPING_VERSION if version > FIRST_END_VERSION_MAX else FIRST_VERSION
        wanted = EndTxn(_producer(request), request.committed, client_version)
        known = self.transactions.get(request.transactional_id)
        verdict = end_txn.decide(known, wanted, next(self._producer_ids), self._now_ms())
        return self._decided(request.transactional_id, verdict, fate)

    def _decided(self, name: str, verdict: TransactionResult, fate: Fate) -> TransactionResult:
        changed = verdict.changed
        if changed is not None:
            if changed.state.is_preparing:
                self._write_markers(changed)
                changed = completed(changed, self._now_ms())
            self.transactions[name] = changed
        return verdict._replace(error=fate.failure) if fate.failure else verdict

    def _write_markers(self, prepared: TransactionMetadata) -> None:
        is_commit = prepared.state is TransactionState.PREPARE_COMMIT
        for partition in prepared.partitions - {OFFSETS}:
            entry = self._entry(partition, prepared.producer_id)
            if entry.producer_epoch != prepared.producer_epoch:
                entry.change_epoch(prepared.producer_epoch)
            for offset, (_, header) in enumerate(self.logs[partition]):
                if header.producer_id == prepared.producer_id:
                    self.ended.setdefault((partition, offset), is_commit)
        for group, (producer_id, offset) in list(self.pending_offsets.items()):
            if producer_id == prepared.producer_id and OFFSETS in prepared.partitions:
                del self.pending_offsets[group]
                if is_commit:
                    self.offsets[group] = offset

    def _now_ms(self) -> int:
        return LoopClock().now_ms()


class ScriptedConnection:
    """As much of a `BrokerConnection` as the producer uses."""

    address = ADDRESS

    def __init__(self, cluster: ScriptedCluster) -> None:
        self._cluster = cluster
        self.is_open = True
        self.features = {"transaction.version": 2 if cluster.bumps_epochs else 0}
        self.on_lost: Callable[[Any], None] | None = None

    def version_for(self, request_class: Any, at_most: int | None = None) -> int:
        newest = int(request_class.SCHEMA.versions.last)
        return newest if at_most is None else min(newest, at_most)

    async def request(
        self, message: Any, response_class: type, *, version: int | None = None, timeout_ms: int | None = None
    ) -> Any:
        """A request is carried out even if the caller is cancelled."""
        if not self.is_open:
            raise ConnectionLostError("closed")
        self._cluster.requests.append(message)
        chosen = self.version_for(type(message)) if version is None else version
        carried = asyncio.ensure_future(self._carry(message, chosen, self._cluster.fate(message)))
        carried.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(carried)

    async def _carry(self, message: Any, version: int, fate: Fate) -> Any:
        await asyncio.sleep(fate.to_broker_ms / 1000)
        if fate.is_request_lost:
            if fate.late_ms is not None:
                later = asyncio.get_running_loop().call_later
                later(fate.late_ms / 1000, self._cluster.answer, message, version, fate)
            self._lose()
        answer = self._cluster.answer(message, version, fate)
        await asyncio.sleep(fate.to_client_ms / 1000)
        if fate.is_answer_lost:
            self._lose()
        return answer

    def _lose(self) -> None:
        self.is_open = False
        raise ConnectionLostError("lost")

    async def close(self) -> None:
        self.is_open = False


def _producer(request: Any) -> ProducerIdAndEpoch:
    return ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
