"""ConsumerGroupHeartbeat: join a KIP-848 consumer group, report state, receive the assignment, and leave."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int16, Int32, String, Uuid, message, request, response, since


@message
class TopicPartitions:
    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = field(default_factory=list)


@message
class ConsumerGroupHeartbeatRequest:
    SCHEMA: ClassVar = request(68)

    group_id: String = ""
    member_id: String = ""
    member_epoch: Int32 = 0
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: list[String] | None = None
    subscribed_topic_regex: Annotated[String | None, since(1)] = None
    server_assignor: String | None = None
    topic_partitions: list[TopicPartitions] | None = None


@message
class Assignment:
    topic_partitions: list[TopicPartitions] = field(default_factory=list)


@message
class ConsumerGroupHeartbeatResponse:
    SCHEMA: ClassVar = response(68)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None
