"""ShareGroupDescribe: state, members and assignments of share groups."""

from dataclasses import field
from typing import ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Bool, Int16, Int32, String, Uuid, message, request, response


@message
class ShareGroupDescribeRequest:
    SCHEMA: ClassVar = request(77)

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
    rack_id: String | None = None
    member_epoch: Int32 = 0
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: list[String] = field(default_factory=list)
    assignment: Assignment = field(default_factory=Assignment)


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
class ShareGroupDescribeResponse:
    SCHEMA: ClassVar = response(77)

    throttle_time_ms: Int32 = 0
    groups: list[DescribedGroup] = field(default_factory=list)
