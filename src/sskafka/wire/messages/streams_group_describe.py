"""StreamsGroupDescribe: state, topology, members and tasks of Kafka Streams groups."""

from dataclasses import dataclass, field
from typing import ClassVar

from sskafka.wire.schema import Bool, Int16, Int32, Int64, String, UInt16, request, response


@dataclass(slots=True)
class StreamsGroupDescribeRequest:
    SCHEMA: ClassVar = request(89, versions=(0, 0), flexible_from=0)

    group_ids: list[String] = field(default_factory=list)
    include_authorized_operations: Bool = False


@dataclass(slots=True)
class KeyValue:
    key: String = ""
    value: String = ""


@dataclass(slots=True)
class TopicInfo:
    name: String = ""
    partitions: Int32 = 0
    replication_factor: Int16 = 0
    topic_configs: list[KeyValue] = field(default_factory=list)


@dataclass(slots=True)
class Subtopology:
    subtopology_id: String = ""
    source_topics: list[String] = field(default_factory=list)
    repartition_sink_topics: list[String] = field(default_factory=list)
    state_changelog_topics: list[TopicInfo] = field(default_factory=list)
    repartition_source_topics: list[TopicInfo] = field(default_factory=list)


@dataclass(slots=True)
class Topology:
    epoch: Int32 = 0
    subtopologies: list[Subtopology] | None = None


@dataclass(slots=True)
class Endpoint:
    host: String = ""
    port: UInt16 = 0


@dataclass(slots=True)
class TaskOffset:
    subtopology_id: String = ""
    partition: Int32 = 0
    offset: Int64 = 0


@dataclass(slots=True)
class TaskIds:
    subtopology_id: String = ""
    partitions: list[Int32] = field(default_factory=list)


@dataclass(slots=True)
class Assignment:
    active_tasks: list[TaskIds] = field(default_factory=list)
    standby_tasks: list[TaskIds] = field(default_factory=list)
    warmup_tasks: list[TaskIds] = field(default_factory=list)


@dataclass(slots=True)
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


@dataclass(slots=True)
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


@dataclass(slots=True)
class StreamsGroupDescribeResponse:
    SCHEMA: ClassVar = response(89, versions=(0, 0), flexible_from=0)

    throttle_time_ms: Int32 = 0
    groups: list[DescribedGroup] = field(default_factory=list)
