"""Metadata: the brokers, the controller, and the topics with their leaders."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import (
    Bool,
    Int16,
    Int32,
    String,
    Uuid,
    between,
    ignorable,
    message,
    nullable,
    request,
    response,
    since,
)


@message
class MetadataRequestTopic:
    topic_id: Annotated[Uuid, since(10), ignorable] = ZERO_UUID
    name: Annotated[String | None, nullable(since=10)] = ""


@message
class MetadataRequest:
    SCHEMA: ClassVar = request(3)

    topics: Annotated[list[MetadataRequestTopic] | None, nullable(since=1)] = field(default_factory=list)
    allow_auto_topic_creation: Annotated[Bool, since(4)] = True
    include_cluster_authorized_operations: Annotated[Bool, between(8, 10)] = False
    include_topic_authorized_operations: Annotated[Bool, since(8)] = False


@message
class MetadataResponseBroker:
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: Annotated[String | None, since(1), ignorable] = None


@message
class MetadataResponsePartition:
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Annotated[Int32, since(7), ignorable] = -1
    replica_nodes: list[Int32] = field(default_factory=list)
    isr_nodes: list[Int32] = field(default_factory=list)
    offline_replicas: Annotated[list[Int32], since(5), ignorable] = field(default_factory=list)


@message
class MetadataResponseTopic:
    error_code: Int16 = 0
    name: Annotated[String | None, nullable(since=12)] = ""
    topic_id: Annotated[Uuid, since(10), ignorable] = ZERO_UUID
    is_internal: Annotated[Bool, since(1), ignorable] = False
    partitions: list[MetadataResponsePartition] = field(default_factory=list)
    topic_authorized_operations: Annotated[Int32, since(8), ignorable] = -2147483648


@message
class MetadataResponse:
    SCHEMA: ClassVar = response(3)

    throttle_time_ms: Annotated[Int32, since(3), ignorable] = 0
    brokers: list[MetadataResponseBroker] = field(default_factory=list)
    cluster_id: Annotated[String | None, since(2), ignorable] = None
    controller_id: Annotated[Int32, since(1), ignorable] = -1
    topics: list[MetadataResponseTopic] = field(default_factory=list)
    cluster_authorized_operations: Annotated[Int32, between(8, 10), ignorable] = -2147483648
    error_code: Annotated[Int16, since(13), ignorable] = 0
