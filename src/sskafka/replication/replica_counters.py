"""Counters and gauges of a broker's replicas, under the names of Kafka's ReplicaManager."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from sskafka.model.counters import Sample

if TYPE_CHECKING:
    from sskafka.replication.partition import Partition

_PREFIX = "kafka_server_replicamanager_"


class ReplicaCounters:
    __slots__ = ("bytes_in", "bytes_out", "failed_isr_updates", "isr_expands", "isr_shrinks")

    def __init__(self) -> None:
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.failed_isr_updates = 0
        self.bytes_in = 0
        """Fetched from leaders."""
        self.bytes_out = 0
        """Sent to followers."""

    def count_isr_change(self, before: int, after: int) -> None:
        if after > before:
            self.isr_expands += 1
        elif after < before:
            self.isr_shrinks += 1

    def samples(self) -> Iterator[Sample]:
        yield Sample(_PREFIX + "isrshrinks_total", (), self.isr_shrinks)
        yield Sample(_PREFIX + "isrexpands_total", (), self.isr_expands)
        yield Sample(_PREFIX + "failedisrupdates_total", (), self.failed_isr_updates)
        yield Sample("kafka_server_brokertopicmetrics_replicationbytesin_total", (), self.bytes_in)
        yield Sample("kafka_server_brokertopicmetrics_replicationbytesout_total", (), self.bytes_out)


def replica_gauges(partitions: "Iterable[Partition]", offline_replicas: int) -> Iterator[Sample]:
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
        yield Sample(_PREFIX + name, (), value)
    lags = (partition.leader.largest_lag(partition.log_end_offset) for partition in led if partition.leader is not None)
    yield Sample("kafka_server_replicafetchermanager_maxlag", (), max(lags, default=0))
    yield from _waiting(led)


def _waiting(led: "Sequence[Partition]") -> Iterator[Sample]:
    """Yield the number of waits for a partition. A request that waits for several partitions counts for each."""
    produces = sum(len(partition.committed_waiters) for partition in led)
    fetches = sum(len(partition.data_waiters) + len(partition.follower_waiters) for partition in led)
    for operation, count in (("Produce", produces), ("Fetch", fetches)):
        yield Sample("kafka_server_delayedoperationpurgatory_purgatorysize", (("delayedoperation", operation),), count)
