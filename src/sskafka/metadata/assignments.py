"""From replicas to partition records: automatic placement or what the client assigned, who is in sync, who leads."""

from collections.abc import Sequence

from sskafka.metadata.image import ClusterImage
from sskafka.metadata.partition_image import UNASSIGNED_DIRECTORY
from sskafka.metadata.placement import PlacementError, place_replicas
from sskafka.metadata.records import PartitionRecord
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import Uuid


def automatic_assignments(
    image: ClusterImage, partitions: range, replication_factor: int, random_start: int
) -> list[tuple[int, ...]]:
    try:
        return place_replicas(image.brokers.values(), partitions, replication_factor, random_start)
    except PlacementError as error:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, str(error)) from error


def check_assignment(image: ClusterImage, replicas: Sequence[int], replication_factor: int | None) -> tuple[int, ...]:
    """What a client assigned to a new partition; raises KafkaError where it cannot be."""
    check_replicas(image, replicas)
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _invalid(f"the assignment {list(replicas)} has another replication factor than {replication_factor}")
    if not any(image.is_active(replica) for replica in replicas):
        raise _invalid(f"no broker of the assignment {list(replicas)} is active")
    return tuple(replicas)


def check_replicas(image: ClusterImage, replicas: Sequence[int]) -> None:
    """Raises KafkaError unless these are registered brokers, each named once."""
    if not replicas:
        raise _invalid("the assignment of a partition is empty")
    if len(set(replicas)) != len(replicas):
        raise _invalid(f"the assignment {list(replicas)} names a broker twice")
    unknown = sorted(set(replicas) - image.brokers.keys())
    if unknown:
        raise _invalid(f"the assignment {list(replicas)} names brokers that are not registered: {unknown}")


def partition_record(image: ClusterImage, topic_id: Uuid, partition: int, replicas: Sequence[int]) -> PartitionRecord:
    """A new partition: in sync are the brokers that are active now, and the first of them leads."""
    isr = [replica for replica in replicas if image.is_active(replica)]
    assert isr, "assignments have an active broker"
    return PartitionRecord(
        partition_id=partition,
        topic_id=topic_id,
        replicas=list(replicas),
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[only_directory(image, replica) for replica in replicas],
    )


def only_directory(image: ClusterImage, broker_id: int) -> Uuid:
    """A broker with one directory has no choice; others tell later which one they took."""
    directories = image.brokers[broker_id].directories
    return directories[0] if len(directories) == 1 else UNASSIGNED_DIRECTORY


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
