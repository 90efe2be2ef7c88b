"""A partition whose leader sends AlterPartition requests, for tests."""

from collections.abc import Sequence

from metadata_clusters import SETTINGS, cluster, decided, with_topic

from sskafka.metadata.alter_partition import alter_partition
from sskafka.metadata.brokers.lifecycle import fence_brokers, register_broker, supported_features, unfence_broker
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)
from sskafka.wire.messages.broker_registration import BrokerRegistrationRequest

CLUSTER_ID = "c"


def replicated(brokers: int = 3, *, elr: bool = True, **configs: str) -> ClusterImage:
    """Topic t with one partition on all brokers; broker 1 is its first replica and leader."""
    image = cluster(brokers, elr=elr)
    with_topic(image, "t", 1, brokers, **configs)
    state = partition(image)
    order = tuple(range(1, brokers + 1))
    directories = tuple(state.directory_of(replica) for replica in order)
    image.topics_by_name["t"].partitions[0] = PartitionImage(order, order, 1, 0, 0, directories)
    return image


def partition(image: ClusterImage) -> PartitionImage:
    return image.topics_by_name["t"].partitions[0]


def isr_request(image: ClusterImage, isr: Sequence[int], **fields: int) -> AlterPartitionRequest:
    """Return the request that the current leader would send."""
    state = partition(image)
    members = [BrokerState(replica, image.brokers[replica].epoch) for replica in isr]
    wanted = RequestPartitionData(
        0, state.leader_epoch, new_isr_with_epochs=members, partition_epoch=state.partition_epoch
    )
    for name, value in fields.items():
        setattr(wanted, name, value)
    topic_id = image.topics_by_name["t"].topic_id
    epoch = image.brokers[state.leader].epoch
    return AlterPartitionRequest(state.leader, epoch, [RequestTopicData(topic_id, [wanted])])


def altered(image: ClusterImage, request: AlterPartitionRequest) -> ResponsePartitionData:
    response = decided(image, alter_partition(image, request, SETTINGS))
    assert response.error_code == 0
    return response.topics[0].partitions[0]


def set_isr(image: ClusterImage, *isr: int) -> None:
    assert altered(image, isr_request(image, isr)).error_code == 0


def fence(image: ClusterImage, *broker_ids: int) -> None:
    decided(image, fence_brokers(image, broker_ids, SETTINGS))


def unfence(image: ClusterImage, broker_id: int) -> None:
    decided(image, unfence_broker(image, broker_id, SETTINGS))


def restart(image: ClusterImage, broker_id: int, *, cleanly: bool = True, directory: bytes | None = None) -> int:
    """Register a new process of the broker; it stays fenced."""
    known = image.brokers[broker_id]
    directories = [directory] if directory is not None else list(known.directories)
    incarnation = (int.from_bytes(known.incarnation_id, "big") + 1).to_bytes(16, "big")
    request = BrokerRegistrationRequest(
        broker_id,
        CLUSTER_ID,
        incarnation,
        features=supported_features(),
        log_dirs=directories,
        previous_broker_epoch=known.epoch if cleanly else -1,
    )
    response = decided(image, register_broker(image, request, CLUSTER_ID, SETTINGS, previous_may_be_alive=False))
    assert response.error_code == 0
    return response.broker_epoch
