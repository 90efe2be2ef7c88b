"""StreamsGroupHeartbeat: join a Kafka Streams group, report tasks, receive the assignment, and leave."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Bool, Int8, Int16, Int32, Int64, String, UInt16, message, request, response


@message
class KeyValue:
    key: String = ""
    value: String = ""


@message
class TopicInfo:
    name: String = ""
    partitions: Int32 = 0
    replication_factor: Int16 = 0
    topic_configs: list[KeyValue] = field(default_factory=list)


@message
class CopartitionGroup:
    source_topics: list[Int16] = field(default_factory=list)
    source_topic_regex: list[Int16] = field(default_factory=list)
    repartition_source_topics: list[Int16] = field(default_factory=list)


@message
class Subtopology:
    subtopology_id: String = ""
    source_topics: list[String] = field(default_factory=list)
    source_topic_regex: list[String] = field(default_factory=list)
    state_changelog_topics: list[TopicInfo] = field(default_factory=list)
    repartition_sink_topics: list[String] = field(default_factory=list)
    repartition_source_topics: list[TopicInfo] = field(default_factory=list)
    copartition_groups: list[CopartitionGroup] = field(default_factory=list)


@message
class Topology:
    epoch: Int32 = 0
    subtopologies: list[Subtopology] = field(default_factory=list)


@message
class TaskIds:
    subtopology_id: String = ""
    partitions: list[Int32] = field(default_factory=list)


@message
class Endpoint:
    host: String = ""
    port: UInt16 = 0


@message
class TaskOffset:
    subtopology_id: String = ""
    partition: Int32 = 0
    offset: Int64 = 0


@message
class StreamsGroupHeartbeatRequest:
    SCHEMA: ClassVar = request(88)

    group_id: String = ""
    member_id: String = ""
    member_epoch: Int32 = 0
    endpoint_information_epoch: Int32 = 0
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    topology: Topology | None = None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: String | None = None
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: Bool = False


@message
class Status:
    status_code: Int8 = 0
    status_detail: String = ""


@message
class TopicPartition:
    topic: String = ""
    partitions: list[Int32] = field(default_factory=list)


@message
class EndpointToPartitions:
    user_endpoint: Endpoint = field(default_factory=Endpoint)
    active_partitions: list[TopicPartition] = field(default_factory=list)
    standby_partitions: list[TopicPartition] = field(default_factory=list)


@message
class StreamsGroupHeartbeatResponse:
    SCHEMA: ClassVar = response(88)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String = ""
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    acceptable_recovery_lag: Int32 = 0
    task_offset_interval_ms: Int32 = 0
    status: list[Status] | None = field(default_factory=list)
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    endpoint_information_epoch: Int32 = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
