"""Assignments of replicas, automatic or manual, and the partition records with the initial ISR and leader."""

from collections.abc import Sequence

from sskafka.metadata.image import ClusterImage
from sskafka.metadata.partitions.image import UNASSIGNED_DIRECTORY
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
        text = f"Unable to replicate the partition {replication_factor} time(s): {error}"
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, text) from error


def check_assignment(image: ClusterImage, replicas: Sequence[int], replication_factor: int | None) -> tuple[int, ...]:
    """Return the manual assignment of a new partition; raise KafkaError if it is invalid."""
    check_replicas(image, replicas)
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _invalid(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )
    if not any(image.is_active(replica) for replica in replicas):
        raise _invalid("All brokers specified in the manual partition assignment are fenced or in controlled shutdown.")
    return tuple(replicas)


def check_replicas(image: ClusterImage, replicas: Sequence[int]) -> None:
    """Raise KafkaError unless these are distinct, registered brokers."""
    if not replicas:
        raise _invalid("The manual partition assignment includes an empty replica list.")
    for broker_id in sorted(replicas):
        if broker_id not in image.brokers:
            text = f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
            raise _invalid(text)
        if replicas.count(broker_id) > 1:
            raise _invalid(f"The manual partition assignment includes the broker {broker_id} more than once.")


def partition_record(image: ClusterImage, topic_id: Uuid, partition: int, replicas: Sequence[int]) -> PartitionRecord:
    """Return the record of a new partition: its ISR are the active brokers, the first of which becomes leader."""
    isr = [replica for replica in replicas if image.is_active(replica)]
    assert isr, "an assignment must have an active broker"
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
    """Return the directory of a broker that has only one; other brokers report later which one they use."""
    directories = image.brokers[broker_id].directories
    return directories[0] if len(directories) == 1 else UNASSIGNED_DIRECTORY


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
