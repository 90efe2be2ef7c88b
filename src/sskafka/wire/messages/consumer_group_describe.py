"""ConsumerGroupDescribe: state, members and assignments of KIP-848 consumer groups."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Bool, Int8, Int16, Int32, String, Uuid, ignorable, message, request, response, since


@message
class ConsumerGroupDescribeRequest:
    SCHEMA: ClassVar = request(69)

    group_ids: list[String] = field(default_factory=list)
    include_authorized_operations: Bool = False


@message
class TopicPartitions:
    topic_id: Uuid = ZERO_UUID
    topic_name: String = ""
    partitions: list[Int32] = field(default_factory=list)


@message
class Assignment:
    topic_partitions: list[TopicPartitions] = field(default_factory=list)


@message
class Member:
    member_id: String = ""
    instance_id: String | None = None
    rack_id: String | None = None
    member_epoch: Int32 = 0
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: list[String] = field(default_factory=list)
    subscribed_topic_regex: String | None = None
    assignment: Assignment = field(default_factory=Assignment)
    target_assignment: Assignment = field(default_factory=Assignment)
    member_type: Annotated[Int8, since(1), ignorable] = -1


@message
class DescribedGroup:
    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: String = ""
    members: list[Member] = field(default_factory=list)
    authorized_operations: Int32 = -2147483648


@message
class ConsumerGroupDescribeResponse:
    SCHEMA: ClassVar = response(69)

    throttle_time_ms: Int32 = 0
    groups: list[DescribedGroup] = field(default_factory=list)
