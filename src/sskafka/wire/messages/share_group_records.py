"""Records of __consumer_offsets for share groups. Keys and values are framed as in `group_records`."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.apis import NEVER
from sskafka.wire.schema import Int8, Int32, Int64, String, Uuid, data, message, tagged


@message
class ShareGroupMemberMetadataKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=10)

    group_id: String = ""
    member_id: String = ""


@message
class ShareGroupMemberMetadataValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=10)

    rack_id: String | None = ""
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: list[String] = field(default_factory=list)


@message
class ShareGroupMetadataKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=11)

    group_id: String = ""


@message
class ShareGroupMetadataValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=11)

    epoch: Int32 = 0
    metadata_hash: Int64 = 0


@message
class ShareGroupTargetAssignmentMetadataKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=12)

    group_id: String = ""


@message
class ShareGroupTargetAssignmentMetadataValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=12)

    assignment_epoch: Int32 = 0
    assignment_timestamp: Annotated[Int64, tagged(0)] = 0


@message
class ShareGroupTargetAssignmentMemberKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=13)

    group_id: String = ""
    member_id: String = ""


@message
class TopicPartition:
    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = field(default_factory=list)


@message
class ShareGroupTargetAssignmentMemberValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=13)

    topic_partitions: list[TopicPartition] = field(default_factory=list)


@message
class ShareGroupCurrentMemberAssignmentKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=14)

    group_id: String = ""
    member_id: String = ""


@message
class TopicPartitions:
    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = field(default_factory=list)


@message
class ShareGroupCurrentMemberAssignmentValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=14)

    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    assigned_partitions: list[TopicPartitions] = field(default_factory=list)


@message
class ShareGroupStatePartitionMetadataKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=15)

    group_id: String = ""


@message
class TopicPartitionsInfo:
    topic_id: Uuid = ZERO_UUID
    topic_name: String = ""
    partitions: list[Int32] = field(default_factory=list)


@message
class TopicInfo:
    topic_id: Uuid = ZERO_UUID
    topic_name: String = ""


@message
class ShareGroupStatePartitionMetadataValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=15)

    initializing_topics: list[TopicPartitionsInfo] = field(default_factory=list)
    initialized_topics: list[TopicPartitionsInfo] = field(default_factory=list)
    deleting_topics: list[TopicInfo] = field(default_factory=list)
