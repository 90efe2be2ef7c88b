"""Metrics of a broker beside those of requests, under the names that the JMX exporter's rules give Kafka's metrics.

All values are computed when the metrics are read.
"""

import os
import resource
from collections.abc import Iterator

from sskafka.metadata.image import ClusterImage
from sskafka.model.counters import Sample
from sskafka.replication.partition import Partition
from sskafka.replication.replica_manager import TopicReplicas
from sskafka.servers.process_usage import resident_bytes

NO_LEADER = -1
_CONTROLLER = "kafka_controller_kafkacontroller_"


def control_samples(image: ClusterImage, node_id: int, leader_id: int) -> Iterator[Sample]:
    """Yield the controller's metrics. Only the active controller reports those of the cluster."""
    is_active = leader_id == node_id
    yield Sample(_CONTROLLER + "activecontrollercount", (), int(is_active))
    if is_active:
        for name, value in _cluster_gauges(image).items():
            yield Sample(_CONTROLLER + name, (), value)
    yield Sample("kafka_server_raftmetrics_currentleader", (), leader_id)
    yield Sample("kafka_server_metadataloader_currentmetadataoffset", (), image.next_offset - 1)


def _cluster_gauges(image: ClusterImage) -> dict[str, int]:
    partitions = [state for _, _, state in image.partitions()]
    fenced = sum(broker.fenced for broker in image.brokers.values())
    return {
        "globaltopiccount": len(image.topics_by_id),
        "globalpartitioncount": len(partitions),
        "offlinepartitionscount": sum(state.leader == NO_LEADER for state in partitions),
        "preferredreplicaimbalancecount": sum(state.leader != state.replicas[0] for state in partitions),
        "activebrokercount": len(image.brokers) - fenced,
        "fencedbrokercount": fenced,
    }


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
    yield Sample("kafka_cluster_partition_underreplicated", labels, int(partition.is_under_replicated()))
    if partition.leader is not None:
        yield Sample("kafka_cluster_partition_insyncreplicascount", labels, len(partition.leader.isr.committed))
        yield Sample("kafka_cluster_partition_replicascount", labels, len(partition.leader.replicas))


def process_samples() -> Iterator[Sample]:
    """Yield metrics of the broker's process, under the names of Prometheus' client libraries."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield Sample("process_cpu_seconds_total", (), usage.ru_utime + usage.ru_stime)
    yield Sample("process_open_fds", (), len(os.listdir("/proc/self/fd")))
    yield Sample("process_resident_memory_bytes", (), resident_bytes())
