"""What clients and followers of a simulated cluster ask, in one call each."""

from replica_brokers import ReplicaBroker
from replica_cluster import TOPIC_ID, ReplicaCluster

from sskafka.records.builder import NewRecord, build_batch
from sskafka.replication.partition import Partition
from sskafka.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from sskafka.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)


def send(broker: ReplicaBroker, *values: bytes, acks: int = -1, timeout_ms: int = 3000) -> list[ProduceResponse]:
    """The answer, once it is there."""
    batch = build_batch([NewRecord(None, value, (), 0) for value in values])
    data = TopicProduceData(topic_id=TOPIC_ID, partition_data=[PartitionProduceData(0, batch)])
    answers: list[ProduceResponse] = []
    broker.produce(ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[data]), answers.append)
    return answers


def result(answers: list[ProduceResponse]) -> PartitionProduceResponse:
    return answers[0].responses[0].partition_responses[0]


def produce(cluster: ReplicaCluster, *values: bytes, acks: int = -1, to: int | None = None) -> PartitionProduceResponse:
    broker = cluster.brokers[to] if to is not None else cluster.leader()
    assert broker is not None
    answers = send(broker, *values, acks=acks)
    cluster.time.run_until(lambda: bool(answers))
    return result(answers)


def consume(
    broker: ReplicaBroker, offset: int, *, epoch: int = -1, rack: str = "", last_epoch: int = -1
) -> tuple[FetchResponse, PartitionData]:
    return _fetch(broker, FetchRequest(topics=_topics(offset, epoch, last_epoch), rack_id=rack, session_epoch=-1))


def fetch_as(
    broker: ReplicaBroker, replica: int, offset: int, *, epoch: int, last_epoch: int = -1, broker_epoch: int = -1
) -> PartitionData:
    request = FetchRequest(
        replica_state=ReplicaState(replica, broker_epoch), topics=_topics(offset, epoch, last_epoch), session_epoch=-1
    )
    return _fetch(broker, request)[1]


def _topics(offset: int, epoch: int, last_epoch: int) -> list[FetchTopic]:
    return [FetchTopic(topic_id=TOPIC_ID, partitions=[FetchPartition(0, epoch, offset, last_epoch, 0, 1 << 20)])]


def _fetch(broker: ReplicaBroker, request: FetchRequest) -> tuple[FetchResponse, PartitionData]:
    answers: list[FetchResponse] = []
    broker.fetch(request, answers.append)
    return answers[0], answers[0].responses[0].partitions[0]


def content(partition: Partition, up_to: int | None = None) -> bytes:
    log = partition.log
    end = log.log_end_offset if up_to is None else up_to
    return b"".join(bytes(part.read()) for part in log.read(log.log_start_offset, 1 << 30, end))
