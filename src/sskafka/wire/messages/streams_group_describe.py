"""StreamsGroupDescribe: state, topology, members and tasks of Kafka Streams groups."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Bool, Int16, Int32, Int64, String, UInt16, message, request, response


@message
class StreamsGroupDescribeRequest:
    SCHEMA: ClassVar = request(89)

    group_ids: list[String] = field(default_factory=list)
    include_authorized_operations: Bool = False


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
class Subtopology:
    subtopology_id: String = ""
    source_topics: list[String] = field(default_factory=list)
    repartition_sink_topics: list[String] = field(default_factory=list)
    state_changelog_topics: list[TopicInfo] = field(default_factory=list)
    repartition_source_topics: list[TopicInfo] = field(default_factory=list)


@message
class Topology:
    epoch: Int32 = 0
    subtopologies: list[Subtopology] | None = None


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
class TaskIds:
    subtopology_id: String = ""
    partitions: list[Int32] = field(default_factory=list)


@message
class Assignment:
    active_tasks: list[TaskIds] = field(default_factory=list)
    standby_tasks: list[TaskIds] = field(default_factory=list)
    warmup_tasks: list[TaskIds] = field(default_factory=list)


@message
class Member:
    member_id: String = ""
    member_epoch: Int32 = 0
    instance_id: String | None = None
    rack_id: String | None = None
    client_id: String = ""
    client_host: String = ""
    topology_epoch: Int32 = 0
    process_id: String = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = field(default_factory=list)
    task_offsets: list[TaskOffset] = field(default_factory=list)
    task_end_offsets: list[TaskOffset] = field(default_factory=list)
    assignment: Assignment = field(default_factory=Assignment)
    target_assignment: Assignment = field(default_factory=Assignment)
    is_classic: Bool = False


@message
class DescribedGroup:
    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    topology: Topology | None = None
    members: list[Member] = field(default_factory=list)
    authorized_operations: Int32 = -2147483648


@message
class StreamsGroupDescribeResponse:
    SCHEMA: ClassVar = response(89)

    throttle_time_ms: Int32 = 0
    groups: list[DescribedGroup] = field(default_factory=list)
