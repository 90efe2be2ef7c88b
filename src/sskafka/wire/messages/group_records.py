"""Records of __consumer_offsets for classic groups and for KIP-848 consumer groups.

A key starts with the record type as int16, the `key` of its schema. A value starts with its version as int16.
"""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.apis import NEVER
from sskafka.wire.schema import (
    Bytes,
    Int8,
    Int32,
    Int64,
    String,
    Uuid,
    between,
    data,
    ignorable,
    message,
    since,
    tagged,
)


@message
class LegacyOffsetCommitKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=0)

    group: String = ""
    topic: String = ""
    partition: Int32 = 0


@message
class LegacyOffsetCommitValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=0)

    offset: Int64 = 0
    metadata: String = ""
    commit_timestamp: Int64 = 0


@message
class OffsetCommitKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=1)

    group: String = ""
    topic: String = ""
    partition: Int32 = 0


@message
class OffsetCommitValue:
    SCHEMA: ClassVar = data(versions=(0, 4), flexible_from=4, key=1)

    offset: Int64 = 0
    leader_epoch: Annotated[Int32, since(3), ignorable] = -1
    metadata: String = ""
    commit_timestamp: Int64 = 0
    expire_timestamp: Annotated[Int64, between(1, 1), ignorable] = -1
    topic_id: Annotated[Uuid, tagged(0, since=4), ignorable] = ZERO_UUID


@message
class GroupMetadataKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=2)

    group: String = ""


@message
class MemberMetadata:
    member_id: String = ""
    group_instance_id: Annotated[String | None, since(3), ignorable] = None
    client_id: String = ""
    client_host: String = ""
    rebalance_timeout: Annotated[Int32, since(1), ignorable] = -1
    session_timeout: Int32 = 0
    subscription: Bytes = b""
    assignment: Bytes = b""


@message
class GroupMetadataValue:
    SCHEMA: ClassVar = data(versions=(0, 4), flexible_from=4, key=2)

    protocol_type: String = ""
    generation: Int32 = 0
    protocol: String | None = ""
    leader: String | None = ""
    current_state_timestamp: Annotated[Int64, since(2), ignorable] = -1
    members: list[MemberMetadata] = field(default_factory=list)


@message
class ConsumerGroupMetadataKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=3)

    group_id: String = ""


@message
class ConsumerGroupMetadataValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=3)

    epoch: Int32 = 0
    metadata_hash: Annotated[Int64, tagged(0)] = 0


@message
class ConsumerGroupPartitionMetadataKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=4)

    group_id: String = ""


@message
class PartitionMetadata:
    partition: Int32 = 0
    racks: list[String] = field(default_factory=list)


@message
class TopicMetadata:
    topic_id: Uuid = ZERO_UUID
    topic_name: String = ""
    num_partitions: Int32 = 0
    partition_metadata: list[PartitionMetadata] = field(default_factory=list)


@message
class ConsumerGroupPartitionMetadataValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=4)

    topics: list[TopicMetadata] = field(default_factory=list)


@message
class ConsumerGroupMemberMetadataKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=5)

    group_id: String = ""
    member_id: String = ""


@message
class ClassicProtocol:
    name: String = ""
    metadata: Bytes = b""


@message
class ClassicMemberMetadata:
    session_timeout_ms: Int32 = 0
    supported_protocols: list[ClassicProtocol] = field(default_factory=list)


@message
class ConsumerGroupMemberMetadataValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=5)

    instance_id: String | None = ""
    rack_id: String | None = ""
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: list[String] = field(default_factory=list)
    subscribed_topic_regex: String | None = ""
    rebalance_timeout_ms: Int32 = -1
    server_assignor: String | None = ""
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, tagged(0)] = field(
        default_factory=ClassicMemberMetadata
    )


@message
class ConsumerGroupTargetAssignmentMetadataKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=6)

    group_id: String = ""


@message
class ConsumerGroupTargetAssignmentMetadataValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=6)

    assignment_epoch: Int32 = 0
    assignment_timestamp: Annotated[Int64, tagged(0)] = 0


@message
class ConsumerGroupTargetAssignmentMemberKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=7)

    group_id: String = ""
    member_id: String = ""


@message
class TopicPartition:
    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = field(default_factory=list)


@message
class ConsumerGroupTargetAssignmentMemberValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=7)

    topic_partitions: list[TopicPartition] = field(default_factory=list)


@message
class ConsumerGroupCurrentMemberAssignmentKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=8)

    group_id: String = ""
    member_id: String = ""


@message
class TopicPartitions:
    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = field(default_factory=list)
    assignment_epochs: Annotated[list[Int32] | None, tagged(0)] = field(default_factory=list)


@message
class ConsumerGroupCurrentMemberAssignmentValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=8)

    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    assigned_partitions: list[TopicPartitions] = field(default_factory=list)
    partitions_pending_revocation: list[TopicPartitions] = field(default_factory=list)


@message
class ConsumerGroupRegularExpressionKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=16)

    group_id: String = ""
    regular_expression: String = ""


@message
class ConsumerGroupRegularExpressionValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=16)

    topics: list[String] = field(default_factory=list)
    version: Int64 = 0
    timestamp: Int64 = 0
