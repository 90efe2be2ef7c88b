from metadata_clusters import SETTINGS, decided, replayed
from partition_changes import partition, replicated, set_isr

from sskafka.metadata.brokers.heartbeats import broker_heartbeat
from sskafka.metadata.brokers.sessions import BrokerSessions
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.metadata.records import BrokerRegistrationChangeRecord
from sskafka.metadata.replica_directories import assign_replicas_to_dirs
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    RequestDirectoryData,
    RequestPartitionData,
    RequestTopicData,
)
from sskafka.wire.messages.broker_heartbeat import BrokerHeartbeatRequest

SECOND = b"\x02" * 16


def two_directories(*, elr: bool = True) -> ClusterImage:
    """Broker 1 has its replica in its first directory of two."""
    image = replicated(2, elr=elr)
    broker = image.brokers[1]
    replayed(image, [BrokerRegistrationChangeRecord(1, broker.epoch, log_dirs=[*broker.directories, SECOND])])
    return image


def assign(
    image: ClusterImage, directory: bytes, topic_id: bytes, *numbers: int, epoch: int | None = None
) -> list[int]:
    topic = RequestTopicData(topic_id, [RequestPartitionData(number) for number in numbers])
    epoch = image.brokers[1].epoch if epoch is None else epoch
    request = AssignReplicasToDirsRequest(1, epoch, [RequestDirectoryData(directory, [topic])])
    response = decided(image, assign_replicas_to_dirs(image, request, SETTINGS))
    if response.error_code:
        return [response.error_code]
    return [answer.error_code for answer in response.directories[0].topics[0].partitions]


def fail_first_directory(image: ClusterImage) -> None:
    broker = image.brokers[1]
    request = BrokerHeartbeatRequest(1, broker.epoch, 10**6, offline_log_dirs=[broker.directories[0]])
    decided(image, broker_heartbeat(image, request, BrokerSessions(1000), SETTINGS, 0))


def test_a_replica_moves_to_another_directory_and_stays_in_sync() -> None:
    image = two_directories()
    assert assign(image, SECOND, image.topics_by_name["t"].topic_id, 0) == [0]
    state = partition(image)
    assert (state.directory_of(1), state.isr, state.leader, state.leader_epoch) == (SECOND, (1, 2), 1, 0)


def test_invalid_assignments_are_rejected() -> None:
    image = two_directories()
    topic_id = image.topics_by_name["t"].topic_id
    assert assign(image, SECOND, b"?" * 16, 0) == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert assign(image, SECOND, topic_id, 5) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert assign(image, SECOND, topic_id, 0, 0) == [0, ErrorCode.INVALID_REQUEST]
    assert assign(image, SECOND, topic_id, 0, epoch=7) == [ErrorCode.STALE_BROKER_EPOCH]
    elsewhere = PartitionImage((2,), (2,), 2, 0, 0, partition(image).directories[1:])
    image.topics_by_name["t"].partitions[0] = elsewhere
    assert assign(image, SECOND, topic_id, 0) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_replicas_of_a_failed_directory_leave_their_isrs() -> None:
    image = two_directories()
    fail_first_directory(image)
    assert image.brokers[1].directories == (SECOND,)
    assert (partition(image).leader, partition(image).isr) == (2, (2,))
    assert not image.brokers[1].fenced


def test_a_replica_recreated_in_another_directory_must_catch_up() -> None:
    image = two_directories()
    set_isr(image, 1)
    fail_first_directory(image)
    assert (partition(image).leader, partition(image).eligible_leader_replicas) == (-1, (1,))
    assert assign(image, SECOND, image.topics_by_name["t"].topic_id, 0) == [0]
    state = partition(image)
    assert (state.leader, state.isr, state.eligible_leader_replicas) == (-1, (), ())
    assert state.last_known_eligible_leader_replicas == ()


def test_the_same_without_elr() -> None:
    image = two_directories(elr=False)
    set_isr(image, 1)
    fail_first_directory(image)
    assert assign(image, SECOND, image.topics_by_name["t"].topic_id, 0) == [0]
    assert (partition(image).leader, partition(image).isr) == (-1, (1,))
