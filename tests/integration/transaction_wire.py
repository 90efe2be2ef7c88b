"""A transactional producer spoken by hand, in the version of the protocol that a test asks for."""

from typing import Any, NamedTuple

from waiting import wait_until
from wire_connection import Connection, values_batch

from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from sskafka.wire.messages.describe_transactions import DescribeTransactionsRequest
from sskafka.wire.messages.end_txn import EndTxnRequest
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest
from sskafka.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sskafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

RETRIED = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}
TRANSACTION = 1
LATEST = -1


class Versions(NamedTuple):
    produce: int
    end: int
    adds_partitions: bool
    """By itself, before it writes."""


FIRST = Versions(produce=9, end=3, adds_partitions=True)
SECOND = Versions(produce=12, end=5, adds_partitions=False)


class WireProducer:
    def __init__(self, connection: Connection, transactional_id: str, versions: Versions = SECOND) -> None:
        self.connection = connection
        self.transactional_id = transactional_id
        self.versions = versions
        self.producer_id = self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    def initialize(self, timeout_ms: int = 60_000) -> "WireProducer":
        """Until the coordinator is there and has aborted what was open."""
        request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[self.transactional_id])
        wait_until(lambda: self.connection.call(request, 4).coordinators[0].error_code == 0, "the coordinator is found")
        response = self.until_settled(InitProducerIdRequest(self.transactional_id, timeout_ms), 4)
        assert response.error_code == 0, response
        self._take(response.producer_id, response.producer_epoch)
        return self

    def until_settled(self, request: Any, version: int) -> Any:
        """Asked again for as long as the answer is to ask again."""
        answers: list[Any] = []

        def is_settled() -> bool:
            answers.append(self.connection.call(request, version))
            return answers[-1].error_code not in RETRIED

        wait_until(is_settled, f"{request} is answered")
        return answers[-1]

    def _take(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.producer_id, self.epoch = producer_id, epoch
            self._sequences.clear()

    def add(self, topic: str, *partitions: int) -> dict[int, int]:
        """Error codes by partition."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(topic, list(partitions))],
        )
        (answered,) = self.connection.call(request, 3).results_by_topic_v3_and_below
        return {item.partition_index: item.partition_error_code for item in answered.results_by_partition}

    def write(self, topic: str, *values: bytes, partition: int = 0) -> None:
        if self.versions.adds_partitions:
            wait_until(lambda: self.add(topic, partition)[partition] == 0, "the partition is added")
        wait_until(lambda: self.try_write(topic, *values, partition=partition) not in RETRIED, "it is written")

    def try_write(self, topic: str, *values: bytes, partition: int = 0, **fields: Any) -> ErrorCode:
        """One Produce request, and what became of it."""
        sequence = self._sequences.get((topic, partition), 0)
        identity = {"producer_id": self.producer_id, "producer_epoch": self.epoch, "base_sequence": sequence}
        batch = values_batch(*values, transactional=True, **(identity | fields))
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(partition, batch)])
        request = ProduceRequest(self.transactional_id, acks=-1, timeout_ms=10_000, topic_data=[data])
        response = self.connection.call(request, self.versions.produce).responses[0].partition_responses[0]
        if response.error_code == 0:
            self._sequences[topic, partition] = sequence + len(values)
        return ErrorCode(response.error_code)

    def end(self, *, commit: bool = True, epoch: int | None = None) -> ErrorCode:
        request = EndTxnRequest(
            self.transactional_id, self.producer_id, self.epoch if epoch is None else epoch, committed=commit
        )
        response = self.until_settled(request, self.versions.end)
        if response.error_code == 0 and self.versions.end >= SECOND.end:
            self._take(response.producer_id, response.producer_epoch)
        return ErrorCode(response.error_code)


def described(connection: Connection, transactional_id: str) -> Any:
    return connection.call(DescribeTransactionsRequest([transactional_id]), 0).transaction_states[0]


def wait_for_state(connection: Connection, transactional_id: str, state: str) -> None:
    wait_until(lambda: described(connection, transactional_id).transaction_state == state, f"{state}", 20)


def stable_end(connection: Connection, topic: str, partition: int = 0) -> int:
    """The last stable offset, as ListOffsets tells those who read committed records."""
    asked = ListOffsetsTopic(topic, [ListOffsetsPartition(partition, timestamp=LATEST)])
    response = connection.call(ListOffsetsRequest(replica_id=-1, isolation_level=1, topics=[asked]), 5)
    return int(response.topics[0].partitions[0].offset)
