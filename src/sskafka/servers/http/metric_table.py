"""Every metric of a broker: name, type, labels and what it says. `/metrics`, OTLP and docs/metrics.md use this table.

Names are those that the JMX exporter's rules of Strimzi give Kafka's metrics. `alias` is the name under the rules of
Confluent, where that differs: both are served. Names that break Prometheus' rules, because a dashboard wants them so,
are untyped: Prometheus accepts any name for those.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple


class MetricKind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    SUMMARY = "summary"
    UNTYPED = "untyped"


COUNTER, GAUGE, SUMMARY, UNTYPED = MetricKind


class Metric(NamedTuple):
    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    alias: str | None = None

    @property
    def alias_kind(self) -> MetricKind:
        """The type of the alias: its own one, if a metric of that type may have the name."""
        assert self.alias is not None
        is_fitting = {
            COUNTER: self.alias.endswith("_total"),
            GAUGE: not self.alias.endswith(("_total", "_count", "_sum")),
        }
        return self.kind if is_fitting.get(self.kind, True) else UNTYPED

    @property
    def sample_names(self) -> tuple[str, ...]:
        """The names of its samples: those of a summary have suffixes."""
        return (self.name, f"{self.name}_sum", f"{self.name}_count") if self.kind is SUMMARY else (self.name,)


class Section(NamedTuple):
    title: str
    metrics: tuple[Metric, ...]


class _Rows(NamedTuple):
    """Metrics that share a prefix and labels: `kind name: help` each."""

    prefix: str
    labels: tuple[str, ...]
    rows: tuple[tuple[MetricKind, str, str], ...]

    def metrics(self) -> Iterable[Metric]:
        for kind, name, text in self.rows:
            full = self.prefix + name
            yield Metric(full, kind, text, self.labels, _alias(full))


_RENAMED = {
    "kafka_network_socketserver_networkprocessoravgidle_percent": (
        "kafka_network_socketserver_networkprocessoravgidlepercent"
    ),
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent": (
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total"
    ),
}
_PER_SECOND = (
    "kafka_server_brokertopicmetrics_",
    "kafka_server_replicamanager_",
    "kafka_network_requestmetrics_",
    "kafka_controller_controllerstats_",
)
_OTHER_PREFIX = {
    "kafka_server_raftmetrics_": "kafka_server_raft_metrics_",
    "kafka_server_socket_server_metrics_": "kafka_server_socketservermetrics_",
}


def _alias(name: str) -> str | None:
    if name.startswith(_PER_SECOND) and name.endswith("_total"):
        return name.removesuffix("_total") + "persec"
    for prefix, other in _OTHER_PREFIX.items():
        if name.startswith(prefix):
            return other + name.removeprefix(prefix)
    return _RENAMED.get(name)


def _section(title: str, *groups: _Rows) -> Section:
    return Section(title, tuple(metric for group in groups for metric in group.metrics()))


_TOPIC = ("topic",)
_PARTITION = ("topic", "partition")
_DIRECTORY = ("logdirectory",)
_LISTENER = ("listener",)
_SOFTWARE = ("client_software_name", "client_software_version", "listener")

# fmt: off
SECTIONS = (
    _section(
        "Topics",
        _Rows("kafka_server_brokertopicmetrics_", _TOPIC, (
            (COUNTER, "messagesin_total", "Records that producers have written."),
            (COUNTER, "bytesin_total", "Bytes that producers have written."),
            (COUNTER, "bytesout_total", "Bytes that consumers have read."),
            (COUNTER, "bytesrejected_total", "Bytes of batches that were rejected."),
            (COUNTER, "totalproducerequests_total", "Produce requests; one that has several topics counts for each."),
            (COUNTER, "totalfetchrequests_total", "Fetch requests of consumers; one counts for each of its topics."),
            (COUNTER, "failedproducerequests_total", "Produce requests that failed."),
            (COUNTER, "failedfetchrequests_total", "Fetch requests of consumers that failed."),
        )),
        _Rows("kafka_server_brokertopicmetrics_", (), (
            (COUNTER, "replicationbytesin_total", "Bytes that this broker has fetched from leaders."),
            (COUNTER, "replicationbytesout_total", "Bytes that followers have fetched from this broker."),
        )),
    ),
    _section(
        "Partitions",
        _Rows("kafka_log_log_", _PARTITION, (
            (GAUGE, "size", "Bytes of the log on the disk."),
            (GAUGE, "numlogsegments", "Segments of the log."),
            (GAUGE, "logstartoffset", "First offset of the log."),
            (GAUGE, "logendoffset", "Offset of the next record."),
        )),
        _Rows("kafka_cluster_partition_", _PARTITION, (
            (GAUGE, "underreplicated", "1 if this broker leads the partition and replicas are out of sync."),
            (GAUGE, "insyncreplicascount", "Replicas in sync. Only the leader reports it."),
            (GAUGE, "replicascount", "Replicas. Only the leader reports it."),
            (GAUGE, "underminisr", "1 if fewer than min.insync.replicas are in sync. Only the leader reports it."),
            (GAUGE, "atminisr", "1 if exactly min.insync.replicas are in sync. Only the leader reports it."),
            (GAUGE, "laststableoffsetlag", ("Offsets between the last stable offset, at which the oldest open "
             "transaction begins, and the high watermark. Only the leader reports it.")),
        )),
    ),
    _section(
        "Replicas",
        _Rows("kafka_server_replicamanager_", (), (
            (GAUGE, "partitioncount", "Replicas on this broker."),
            (GAUGE, "leadercount", "Partitions that this broker leads."),
            (GAUGE, "offlinereplicacount", "Replicas in log directories that are offline."),
            (GAUGE, "underreplicatedpartitions", "Partitions led here that have replicas out of sync."),
            (GAUGE, "underminisrpartitioncount", "Partitions led here with fewer than min.insync.replicas in sync."),
            (GAUGE, "atminisrpartitioncount", "Partitions led here with exactly min.insync.replicas in sync."),
            (COUNTER, "isrshrinks_total", "Replicas that fell out of sync, in partitions led here."),
            (COUNTER, "isrexpands_total", "Replicas that came into sync, in partitions led here."),
            (COUNTER, "failedisrupdates_total", "Changes of in-sync replicas that the controller rejected."),
        )),
        _Rows("kafka_server_replicafetchermanager_", (), (
            (GAUGE, "maxlag", "Records that the slowest follower of a partition led here is behind."),
        )),
        _Rows("kafka_server_delayedoperationpurgatory_", ("delayedoperation",), (
            (GAUGE, "purgatorysize", "Waits for a partition; a request that waits for several counts for each."),
        )),
    ),
    _section(
        "Requests",
        _Rows("kafka_network_requestmetrics_", ("request",), (
            (COUNTER, "requests_total", "Requests."),
            (COUNTER, "errors_total", "Requests that failed as a whole."),
            (COUNTER, "requestbytes_total", "Bytes of requests."),
            (SUMMARY, "totaltimems", ("Milliseconds from the arrival of a request to its response. Quantiles are upper "
             "bounds since the start, exact to a factor of two.")),
            (SUMMARY, "localtimems", ("Milliseconds from the arrival of a request until its handler answered it or set "
             "it aside. Requests before it in the same read count, too.")),
            (SUMMARY, "remotetimems", ("Milliseconds that a request was set aside: it waited for replicas, records, a "
             "coordinator or its next slice.")),
            (SUMMARY, "throttletimems", "Milliseconds for which a quota muted the connection after the response."),
        )),
        _Rows("", (), (
            (GAUGE, "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
             "Share of the last minute in which the thread that handles requests used no CPU, from 0 to 1."),
            (GAUGE, "kafka_network_socketserver_networkprocessoravgidle_percent",
             "Share of the last minute in which the thread that serves connections used no CPU: the same thread."),
            (GAUGE, "sskafka_data_loop_longest_turn_seconds", "Longest turn of the event loop since the start."),
            (GAUGE, "sskafka_data_loop_longest_turn_cpu_seconds", "CPU time of that turn."),
        )),
        _Rows("sskafka_data_loop_", ("request",), (
            (COUNTER, "slow_turns_total", "Turns of the event loop above 50 ms, by the request in them."),
        )),
    ),
    _section(
        "Connections",
        _Rows("kafka_server_socket_server_metrics_", _LISTENER, (
            (UNTYPED, "connection_count", "Open connections."),
            (COUNTER, "connection_creation_total", "Connections that were accepted."),
            (GAUGE, "connection_creation_rate", "Connections accepted per second, over about a minute."),
            (COUNTER, "connection_close_total", "Connections that were closed."),
            (GAUGE, "connection_close_rate", "Connections closed per second, over about a minute."),
            (COUNTER, "connection_refused_total", "Connections that were refused, by a limit or for a bad request."),
            (UNTYPED, "expired_connections_killed_count", "Connections closed because they were idle or silent."),
            (COUNTER, "failed_authentication_total", "Logins and TLS handshakes that failed."),
            (COUNTER, "incoming_byte_total", "Bytes received."),
            (COUNTER, "outgoing_byte_total", "Bytes sent."),
        )),
        _Rows("kafka_server_socketservermetrics_", _SOFTWARE, (
            (GAUGE, "connections", "Open connections by the software that clients name; rare ones are `other`."),
        )),
        _Rows("kafka_network_acceptor_", _LISTENER, (
            (GAUGE, "paused", "1 while the process has no descriptor left for new connections."),
            (COUNTER, "pauses_total", "How often that happened."),
        )),
    ),
    _section(
        "Log directories",
        _Rows("kafka_log_logmanager_", _DIRECTORY, (
            (GAUGE, "logdirectoryoffline", "1 if the directory has failed."),
            (GAUGE, "logdirectoryfull", "1 while the disk has no space."),
            (COUNTER, "logdirectoryfull_total", "How often the disk ran out of space."),
            (GAUGE, "logdirectoryshort", "1 while the process lacks descriptors or memory for files."),
            (COUNTER, "logdirectoryshort_total", "How often that happened."),
        )),
        _Rows("kafka_log_logmanager_", (), (
            (GAUGE, "offlinelogdirectorycount", "Log directories that have failed."),
        )),
        _Rows("sskafka_log_directory_", _DIRECTORY, (
            (GAUGE, "size_bytes", "Size of the file system that has the log directory."),
            (GAUGE, "available_bytes", "Free space there, for processes that are not root."),
        )),
        _Rows("kafka_log_logcleanermanager_", (), (
            (GAUGE, "max_dirty_percent", "Largest share of a compacted log that is not compacted, of 100."),
            (GAUGE, "time_since_last_run_seconds", "Time since logs were last looked at for compaction."),
        )),
        _Rows("kafka_log_logcleanermanager_", _DIRECTORY, (
            (UNTYPED, "uncleanable_partitions_count", "Logs whose compaction has failed."),
            (GAUGE, "uncleanable_bytes", "Size of these logs."),
        )),
        _Rows("kafka_log_logcleaner_", (), (
            (GAUGE, "max_buffer_utilization_percent", "Share of the memory for keys that the last compaction used."),
            (GAUGE, "cleaner_recopy_percent", "Share of what the last compaction read that it wrote again."),
            (GAUGE, "max_clean_time_secs", "Duration of the last compaction."),
        )),
        _Rows("kafka_log_logscrubber_", (), (
            (COUNTER, "rounds_total", "Verifications of all logs that are complete."),
            (COUNTER, "bytesread_total", "Bytes that were verified."),
            (COUNTER, "damagedranges_total", "Damaged ranges that were found."),
            (COUNTER, "replacedranges_total", "Damaged ranges that were replaced from another replica."),
            (COUNTER, "wrongindexes_total", "Indexes that did not match their segment, and were rebuilt."),
            (GAUGE, "damagedranges", "Damaged ranges that are still there; they are not served."),
        )),
    ),
    _section(
        "Controller",
        _Rows("kafka_controller_kafkacontroller_", (), (
            (GAUGE, "activecontrollercount", "1 on the active controller. The sum over the cluster is 1."),
            (GAUGE, "globaltopiccount", "Topics of the cluster. Only the active controller reports it."),
            (GAUGE, "globalpartitioncount", "Partitions of the cluster. Only the active controller reports it."),
            (GAUGE, "offlinepartitionscount", "Partitions without a leader. Only the active controller reports it."),
            (GAUGE, "preferredreplicaimbalancecount", ("Partitions whose leader is not their first replica. Only the "
             "active controller reports it.")),
            (GAUGE, "activebrokercount", "Brokers that serve clients. Only the active controller reports it."),
            (GAUGE, "fencedbrokercount", ("Brokers that are registered but fenced. Only the active controller reports "
             "it.")),
            (UNTYPED, "metadataerrorcount", ("Records of the metadata log that this node skipped, because it does not "
             "know their type. Any other error ends the node.")),
            (GAUGE, "lastappliedrecordoffset", "Offset of the last metadata record that this node has applied."),
            (GAUGE, "lastcommittedrecordoffset", "Offset of the last metadata record that is committed."),
            (GAUGE, "lastappliedrecordtimestamp", "Milliseconds since 1970 of the last metadata record applied."),
            (GAUGE, "lastappliedrecordlagms", "Milliseconds since then; 0 on the active controller."),
        )),
        _Rows("kafka_controller_controllerstats_", (), (
            (COUNTER, "uncleanleaderelections_total", ("Leaders that this node elected as active controller although "
             "they may lack committed records.")),
        )),
        _Rows("kafka_controller_controllereventmanager_", (), (
            (SUMMARY, "eventqueuetimems", "Milliseconds that requests to the active controller waited for their turn."),
            (SUMMARY, "eventqueueprocessingtimems", "Milliseconds that the active controller needed to decide."),
        )),
    ),
    _section(
        "Metadata quorum",
        _Rows("kafka_server_raftmetrics_", (), (
            (GAUGE, "current_leader", "Node that leads the quorum; -1 if this node knows none."),
            (GAUGE, "current_vote", "Node that this node voted for in this epoch; -1 if none."),
            (GAUGE, "current_epoch", "Epoch of the quorum."),
            (GAUGE, "high_watermark", "Offset up to which metadata is committed."),
            (GAUGE, "log_end_offset", "Offset of the next metadata record."),
            (GAUGE, "number_of_voters", "Voters of the quorum."),
            (GAUGE, "append_records_rate", ("Metadata records per second that this node appended as the leader, over "
             "about a minute.")),
            (GAUGE, "fetch_records_rate", "Metadata records per second that this node fetched, over about a minute."),
            (GAUGE, "commit_latency_avg", ("Mean milliseconds from append to commit on the leader, over about a "
             "minute.")),
            (GAUGE, "commit_latency_max", "Longest of these in the last 30 to 60 seconds."),
            (GAUGE, "election_latency_avg", "Mean milliseconds without a known leader, over about a minute."),
            (GAUGE, "election_latency_max", "Longest of these in the last 30 to 60 seconds."),
        )),
        _Rows("kafka_server_raftmetrics_", ("current_state",), (
            (GAUGE, "current_state", "1, with the role of this node in the label."),
        )),
        _Rows("kafka_server_raftchannelmetrics_", (), (
            (COUNTER, "request_total", "Requests that this node sent to other nodes as a member of the quorum."),
            (COUNTER, "response_total", "Responses to these."),
            (COUNTER, "outgoing_byte_total", "Bytes of these requests."),
            (COUNTER, "incoming_byte_total", "Bytes of these responses."),
        )),
        _Rows("", (), (
            (GAUGE, "kafka_server_metadataloader_currentmetadataoffset", "Offset of the metadata that clients see."),
            (GAUGE, "kafka_server_brokermetadatametrics_last_applied_record_offset",
             "Offset of the metadata that clients see."),
        )),
    ),
    _section(
        "Groups",
        _Rows("kafka_consumergroup_", ("consumergroup", "topic", "partition"), (
            (GAUGE, "lag", "Records between the committed offset and the end. Only the coordinator reports it."),
            (GAUGE, "current_offset", "Committed offset. Only the coordinator reports it."),
        )),
        _Rows("kafka_coordinator_group_groupmetadatamanager_", (), (
            (GAUGE, "numgroups", "Groups that this broker coordinates."),
            (GAUGE, "numgroupsempty", "Classic groups without members."),
            (GAUGE, "numgroupspreparingrebalance", "Classic groups that wait for members to join."),
            (GAUGE, "numgroupscompletingrebalance", "Classic groups that wait for the assignment of their leader."),
            (GAUGE, "numgroupsstable", "Classic groups whose members have their assignments."),
            (GAUGE, "numgroupsdead", "Classic groups that are being removed."),
        )),
        _Rows("kafka_server_group_coordinator_metrics_", ("protocol", "state"), (
            (GAUGE, "groups", "Groups that this broker coordinates, by protocol and state."),
        )),
        _Rows("kafka_server_group_coordinator_metrics_", ("state",), (
            (GAUGE, "num_partitions", "Partitions of __consumer_offsets on this coordinator."),
        )),
        _Rows("kafka_server_group_coordinator_metrics_", (), (
            (COUNTER, "partition_load_total", "Partitions that were loaded."),
            (GAUGE, "partition_load_time_avg", "Mean milliseconds of a load."),
            (GAUGE, "partition_load_time_max", "Longest load in milliseconds."),
            (COUNTER, "unreadable_records_total", "Records that a load skipped because they are damaged."),
        )),
    ),
    _section(
        "Transactions",
        _Rows("kafka_coordinator_transaction_", ("state",), (
            (GAUGE, "transactions", "Transactional ids that this broker coordinates; `Ongoing` ones are open."),
        )),
        _Rows("kafka_coordinator_transaction_", (), (
            (COUNTER, "committed_total", "Transactions that were committed."),
            (COUNTER, "aborted_total", "Transactions that were aborted."),
            (COUNTER, "timedout_total", "Transactions that were aborted because of their timeout."),
            (GAUGE, "markers_pending", "Markers that are not written yet."),
        )),
        _Rows("kafka_server_transaction_coordinator_metrics_", ("state",), (
            (GAUGE, "num_partitions", "Partitions of __transaction_state on this coordinator."),
        )),
        _Rows("kafka_server_transaction_coordinator_metrics_", (), (
            (COUNTER, "partition_load_total", "Partitions that were loaded."),
            (GAUGE, "partition_load_time_avg", "Mean milliseconds of a load."),
            (GAUGE, "partition_load_time_max", "Longest load in milliseconds."),
            (COUNTER, "unreadable_records_total", "Records that a load skipped because they are damaged."),
        )),
    ),
    _section(
        "Process",
        _Rows("", (), (
            (GAUGE, "kafka_server_kafkaserver_brokerstate", "1 while the broker starts or is fenced, 3 if it serves."),
            (UNTYPED, "kafka_server_kafkaserver_linux_disk_read_bytes", "Bytes that the process read from disks."),
            (UNTYPED, "kafka_server_kafkaserver_linux_disk_write_bytes", "Bytes that the process wrote to disks."),
            (COUNTER, "process_cpu_seconds_total", "CPU time of the broker's process."),
            (GAUGE, "process_open_fds", "Open file descriptors."),
            (GAUGE, "process_max_fds", "Limit of open file descriptors."),
            (GAUGE, "process_resident_memory_bytes", "Memory in use."),
            (GAUGE, "process_start_time_seconds", "Start of the process, in seconds since 1970."),
        )),
        _Rows("python_gc_", ("generation",), (
            (COUNTER, "collections_total", "Garbage collections by generation."),
        )),
        _Rows("sskafka_", ("version", "python", "compiled"), (
            (GAUGE, "build_info", "1, with the versions in the labels."),
        )),
    ),
)
# fmt: on
BROKER_METRICS = tuple(metric for section in SECTIONS for metric in section.metrics)


def by_sample_name(metrics: Iterable[Metric]) -> Mapping[str, Metric]:
    """Return the metric of each name that a sample may have."""
    return {name: metric for metric in metrics for name in metric.sample_names}
