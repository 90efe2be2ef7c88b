"""Counters and gauges of a broker's replicas, under the names of Kafka's ReplicaManager."""

from collections.abc import Iterator

from sskafka.model.counters import Sample

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
