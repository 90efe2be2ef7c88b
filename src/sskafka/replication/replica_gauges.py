"""Gauges of a broker's replicas, under the names of Kafka's ReplicaManager."""

from collections.abc import Iterable, Iterator

from sskafka.model.counters import Sample
from sskafka.replication.partition import Partition


def replica_gauges(partitions: Iterable[Partition], offline_replicas: int) -> Iterator[Sample]:
    every = list(partitions)
    led = [partition for partition in every if partition.is_leader]
    gauges = {
        "partitioncount": len(every),
        "leadercount": len(led),
        "offlinereplicacount": offline_replicas,
        "underreplicatedpartitions": sum(partition.is_under_replicated() for partition in led),
        "underminisrpartitioncount": sum(not partition.has_enough_in_sync() for partition in led),
        "atminisrpartitioncount": sum(partition.is_at_min_isr() for partition in led),
    }
    for name, value in gauges.items():
        yield Sample(f"kafka_server_replicamanager_{name}", (), value)
