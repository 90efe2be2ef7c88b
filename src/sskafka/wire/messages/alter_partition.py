"""AlterPartition: a partition leader asks the controller to change the in-sync replicas."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int8, Int16, Int32, Int64, Uuid, message, request, response, since, until


@message
class BrokerState:
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1


@message
class RequestPartitionData:
    partition_index: Int32 = 0
    leader_epoch: Int32 = 0
    new_isr: Annotated[list[Int32], until(2)] = field(default_factory=list)
    new_isr_with_epochs: Annotated[list[BrokerState], since(3)] = field(default_factory=list)
    leader_recovery_state: Int8 = 0
    partition_epoch: Int32 = 0


@message
class RequestTopicData:
    topic_id: Uuid = ZERO_UUID
    partitions: list[RequestPartitionData] = field(default_factory=list)


@message
class AlterPartitionRequest:
    SCHEMA: ClassVar = request(56)

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    topics: list[RequestTopicData] = field(default_factory=list)


@message
class ResponsePartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    isr: list[Int32] = field(default_factory=list)
    leader_recovery_state: Int8 = 0
    partition_epoch: Int32 = 0


@message
class ResponseTopicData:
    topic_id: Uuid = ZERO_UUID
    partitions: list[ResponsePartitionData] = field(default_factory=list)


@message
class AlterPartitionResponse:
    SCHEMA: ClassVar = response(56)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    topics: list[ResponseTopicData] = field(default_factory=list)
