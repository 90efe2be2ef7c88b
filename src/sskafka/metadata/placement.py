"""Placement of the replicas of new partitions.

Brokers form a stripe that changes the rack with every step as long as possible:

    rack a: 1 2 3    rack b: 4 5    rack c: 6        stripe: 1 4 6 2 5 3

The broker at `start + p` leads partition p. Its followers are taken from the stripe after the leader: first one from
each rack that has no replica yet, then one from each host without a replica, because a machine may run several brokers,
then any. After each full round of leaders, followers start one position later, so that two brokers do not share all
their partitions. Fenced brokers come last and never lead: they get replicas only if there are too few unfenced brokers.
A broker in controlled shutdown gets none; after its shutdown it is a fenced broker like any other and may return soon.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, zip_longest

from sskafka.metadata.brokers.registration import BrokerRegistration
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.partitions.image import UNASSIGNED_DIRECTORY
from sskafka.metadata.records import PartitionRecord
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import Uuid


class PlacementError(Exception):
    """There are too few brokers for the requested replication factor."""


def place_replicas(
    brokers: Iterable[BrokerRegistration], partitions: range, replication_factor: int, random_start: int
) -> list[tuple[int, ...]]:
    """Return the replicas of each partition, preferred leader first."""
    brokers = [broker for broker in brokers if broker.takes_new_replicas]
    unfenced = stripe([broker for broker in brokers if broker.is_active])
    fenced = stripe([broker for broker in brokers if broker.fenced])
    _check_enough(len(unfenced), len(unfenced) + len(fenced), replication_factor)
    return [_place_replicas_of(unfenced, fenced, replication_factor, random_start, number) for number in partitions]


def stripe(brokers: Sequence[BrokerRegistration]) -> list[BrokerRegistration]:
    racks: dict[str, list[BrokerRegistration]] = {}
    for broker in sorted(brokers, key=lambda broker: (broker.rack or "", broker.id)):
        racks.setdefault(broker.rack or "", []).append(broker)
    rounds = zip_longest(*racks.values())
    return [broker for broker in chain.from_iterable(rounds) if broker is not None]


def _check_enough(unfenced: int, usable: int, replication_factor: int) -> None:
    if unfenced == 0:
        raise PlacementError("All brokers are currently fenced or in controlled shutdown.")
    if replication_factor > usable:
        raise PlacementError(
            f"The target replication factor of {replication_factor} cannot be reached because only {usable} broker(s) "
            "are registered or some brokers have all their log directories cordoned."
        )


def _place_replicas_of(
    unfenced: Sequence[BrokerRegistration],
    fenced: Sequence[BrokerRegistration],
    replication_factor: int,
    start: int,
    number: int,
) -> tuple[int, ...]:
    position = (start + number) % len(unfenced)
    round_number = number // len(unfenced)
    leader = unfenced[position]
    others = [*_rotated(_after(unfenced, position), round_number), *_rotated(fenced, number)]
    return (leader.id, *_spread(leader, others, replication_factor - 1))


def _after(brokers: Sequence[BrokerRegistration], position: int) -> list[BrokerRegistration]:
    return [*brokers[position + 1 :], *brokers[:position]]


def _rotated(brokers: Sequence[BrokerRegistration], by: int) -> list[BrokerRegistration]:
    at = by % len(brokers) if brokers else 0
    return [*brokers[at:], *brokers[:at]]


def _spread(leader: BrokerRegistration, candidates: list[BrokerRegistration], count: int) -> Iterator[int]:
    """Yield up to `count` candidates in order: first those from racks without a replica, then from such hosts."""
    chosen = [leader]
    places: tuple[Callable[[BrokerRegistration], object], ...] = (_rack, _host, _id)
    for place in places:
        taken = {place(broker) for broker in chosen}
        for broker in candidates:
            if len(chosen) > count:
                return
            if place(broker) not in taken:
                taken.add(place(broker))
                chosen.append(broker)
                yield broker.id


def _rack(broker: BrokerRegistration) -> str | None:
    return broker.rack


def _host(broker: BrokerRegistration) -> str | None:
    return broker.endpoints[0].host if broker.endpoints else None


def _id(broker: BrokerRegistration) -> int:
    return broker.id


def automatic_assignments(
    image: ClusterImage, partitions: range, replication_factor: int, random_start: int
) -> list[tuple[int, ...]]:
    """Return the replicas of each new partition; raise KafkaError if there are too few brokers."""
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
