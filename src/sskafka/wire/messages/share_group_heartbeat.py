"""ShareGroupHeartbeat: join a share group, receive the assignment, and leave."""

from dataclasses import field
from typing import ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int16, Int32, String, Uuid, message, request, response


@message
class ShareGroupHeartbeatRequest:
    SCHEMA: ClassVar = request(76)

    group_id: String = ""
    member_id: String = ""
    member_epoch: Int32 = 0
    rack_id: String | None = None
    subscribed_topic_names: list[String] | None = None


@message
class TopicPartitions:
    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = field(default_factory=list)


@message
class Assignment:
    topic_partitions: list[TopicPartitions] = field(default_factory=list)


@message
class ShareGroupHeartbeatResponse:
    SCHEMA: ClassVar = response(76)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None
