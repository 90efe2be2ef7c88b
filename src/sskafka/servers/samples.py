"""Metrics of topics, partitions and the process, under the names that the JMX exporter's rules give Kafka's metrics.

All values are computed when the metrics are read.
"""

import gc
import os
import resource
import sys
import time
from collections.abc import Iterator
from functools import cache

from sskafka.compiled import IS_COMPILED
from sskafka.model.counters import Sample
from sskafka.model.version import __version__
from sskafka.replication.partition import Partition
from sskafka.replication.replica_manager import TopicReplicas
from sskafka.servers.process_usage import process_usage, resident_bytes

_PARTITION = "kafka_cluster_partition_"
_DISK = "kafka_server_kafkaserver_linux_disk_"
STARTING, RUNNING = 1, 3
"""States of a broker, as Kafka numbers them."""


def broker_state(*, is_active: bool) -> Sample:
    return Sample("kafka_server_kafkaserver_brokerstate", (), RUNNING if is_active else STARTING)


def topic_samples(topic: TopicReplicas) -> Iterator[Sample]:
    yield from topic.counters.samples(topic.name)
    for partition in list(topic.partitions.values()):
        yield from _partition_samples(partition)


def _partition_samples(partition: Partition) -> Iterator[Sample]:
    topic, index = partition.topic_partition
    labels = (("topic", topic), ("partition", str(index)))
    yield Sample("kafka_log_log_size", labels, partition.size_bytes)
    yield Sample("kafka_log_log_numlogsegments", labels, partition.segment_count)
    yield Sample("kafka_log_log_logstartoffset", labels, partition.log_start_offset)
    yield Sample("kafka_log_log_logendoffset", labels, partition.log_end_offset)
    yield Sample(_PARTITION + "underreplicated", labels, int(partition.is_under_replicated()))
    if partition.leader is not None:
        yield Sample(_PARTITION + "insyncreplicascount", labels, len(partition.leader.isr.committed))
        yield Sample(_PARTITION + "replicascount", labels, len(partition.leader.replicas))
        yield Sample(_PARTITION + "underminisr", labels, int(not partition.has_enough_in_sync()))
        yield Sample(_PARTITION + "atminisr", labels, int(partition.is_at_min_isr()))
        stable_lag = partition.high_watermark - partition.last_stable_offset
        yield Sample(_PARTITION + "laststableoffsetlag", labels, stable_lag)


def process_samples() -> Iterator[Sample]:
    """Yield metrics of the broker's process, under the names of Prometheus' client libraries."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield Sample("process_cpu_seconds_total", (), usage.ru_utime + usage.ru_stime)
    yield Sample("process_open_fds", (), len(os.listdir("/proc/self/fd")))
    yield Sample("process_max_fds", (), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    yield Sample("process_start_time_seconds", (), _start_time_s())
    yield Sample("process_resident_memory_bytes", (), resident_bytes())
    yield from _disk_samples()
    for generation, counts in enumerate(gc.get_stats()):
        yield Sample("python_gc_collections_total", (("generation", str(generation)),), counts["collections"])
    labels = (("version", __version__), ("python", sys.version.split()[0]), ("compiled", str(IS_COMPILED).lower()))
    yield Sample("sskafka_build_info", labels, 1)


def _disk_samples() -> Iterator[Sample]:
    """Yield what the process has read from disks and written to them. Some containers hide these numbers."""
    try:
        with open("/proc/self/io", encoding="ascii") as io:
            counts = dict(line.split(": ") for line in io.read().splitlines())
    except OSError:
        return
    yield Sample(_DISK + "read_bytes", (), int(counts["read_bytes"]))
    yield Sample(_DISK + "write_bytes", (), int(counts["write_bytes"]))


@cache
def _start_time_s() -> float:
    return time.time() - process_usage().uptime_ms / 1000
