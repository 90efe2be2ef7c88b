"""Records of __consumer_offsets for Kafka Streams groups. Keys and values are framed as in `group_records`."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.apis import NEVER
from sskafka.wire.schema import Int8, Int16, Int32, Int64, String, UInt16, data, message, tagged


@message
class StreamsGroupMetadataKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=17)

    group_id: String = ""


@message
class LastAssignmentConfig:
    key: String = ""
    value: String = ""


@message
class StreamsGroupMetadataValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=17)

    epoch: Int32 = 0
    metadata_hash: Int64 = 0
    validated_topology_epoch: Annotated[Int32, tagged(0)] = -1
    last_assignment_configs: Annotated[list[LastAssignmentConfig] | None, tagged(1)] = field(default_factory=list)


@message
class StreamsGroupMemberMetadataKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=19)

    group_id: String = ""
    member_id: String = ""


@message
class Endpoint:
    host: String = ""
    port: UInt16 = 0


@message
class KeyValue:
    key: String = ""
    value: String = ""


@message
class StreamsGroupMemberMetadataValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=19)

    instance_id: String | None = ""
    rack_id: String | None = ""
    client_id: String = ""
    client_host: String = ""
    rebalance_timeout_ms: Int32 = -1
    topology_epoch: Int32 = 0
    process_id: String = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = field(default_factory=list)


@message
class StreamsGroupTargetAssignmentMetadataKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=20)

    group_id: String = ""


@message
class StreamsGroupTargetAssignmentMetadataValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=20)

    assignment_epoch: Int32 = 0
    assignment_timestamp: Annotated[Int64, tagged(0)] = 0


@message
class StreamsGroupTargetAssignmentMemberKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=21)

    group_id: String = ""
    member_id: String = ""


@message
class StreamsGroupTargetAssignmentMemberTaskIds:
    subtopology_id: String = ""
    partitions: list[Int32] = field(default_factory=list)


@message
class StreamsGroupTargetAssignmentMemberValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=21)

    active_tasks: list[StreamsGroupTargetAssignmentMemberTaskIds] = field(default_factory=list)
    standby_tasks: list[StreamsGroupTargetAssignmentMemberTaskIds] = field(default_factory=list)
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberTaskIds] = field(default_factory=list)


@message
class StreamsGroupCurrentMemberAssignmentKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=22)

    group_id: String = ""
    member_id: String = ""


@message
class StreamsGroupCurrentMemberAssignmentTaskIds:
    subtopology_id: String = ""
    partitions: list[Int32] = field(default_factory=list)
    assignment_epochs: Annotated[list[Int32] | None, tagged(0)] = field(default_factory=list)


@message
class StreamsGroupCurrentMemberAssignmentValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=22)

    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    active_tasks: list[StreamsGroupCurrentMemberAssignmentTaskIds] = field(default_factory=list)
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentTaskIds] = field(default_factory=list)
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentTaskIds] = field(default_factory=list)
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentTaskIds] = field(default_factory=list)
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentTaskIds] = field(default_factory=list)
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentTaskIds] = field(default_factory=list)


@message
class StreamsGroupTopologyKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=23)

    group_id: String = ""


@message
class TopicConfig:
    key: String = ""
    value: String = ""


@message
class TopicInfo:
    name: String = ""
    partitions: Int32 = 0
    replication_factor: Int16 = 0
    topic_configs: list[TopicConfig] = field(default_factory=list)


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
class StreamsGroupTopologyValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=23)

    epoch: Int32 = 0
    subtopologies: list[Subtopology] = field(default_factory=list)
