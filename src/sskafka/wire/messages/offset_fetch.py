"""OffsetFetch: fetch the committed offsets of groups."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import (
    Bool,
    Int16,
    Int32,
    Int64,
    String,
    Uuid,
    between,
    ignorable,
    message,
    nullable,
    request,
    response,
    since,
    until,
)


@message
class OffsetFetchRequestTopic:
    name: String = ""
    partition_indexes: list[Int32] = field(default_factory=list)


@message
class OffsetFetchRequestTopics:
    name: Annotated[String, until(9), ignorable] = ""
    topic_id: Annotated[Uuid, since(10), ignorable] = ZERO_UUID
    partition_indexes: list[Int32] = field(default_factory=list)


@message
class OffsetFetchRequestGroup:
    group_id: String = ""
    member_id: Annotated[String | None, since(9), ignorable] = None
    member_epoch: Annotated[Int32, since(9), ignorable] = -1
    topics: list[OffsetFetchRequestTopics] | None = field(default_factory=list)


@message
class OffsetFetchRequest:
    SCHEMA: ClassVar = request(9)

    group_id: Annotated[String, until(7)] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, until(7), nullable(since=2)] = field(default_factory=list)
    groups: Annotated[list[OffsetFetchRequestGroup], since(8)] = field(default_factory=list)
    require_stable: Annotated[Bool, since(7)] = False


@message
class OffsetFetchResponsePartition:
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, since(5), ignorable] = -1
    metadata: String | None = ""
    error_code: Int16 = 0


@message
class OffsetFetchResponseTopic:
    name: String = ""
    partitions: list[OffsetFetchResponsePartition] = field(default_factory=list)


@message
class OffsetFetchResponsePartitions:
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = -1
    metadata: String | None = ""
    error_code: Int16 = 0


@message
class OffsetFetchResponseTopics:
    name: Annotated[String, until(9), ignorable] = ""
    topic_id: Annotated[Uuid, since(10), ignorable] = ZERO_UUID
    partitions: list[OffsetFetchResponsePartitions] = field(default_factory=list)


@message
class OffsetFetchResponseGroup:
    group_id: String = ""
    topics: list[OffsetFetchResponseTopics] = field(default_factory=list)
    error_code: Int16 = 0


@message
class OffsetFetchResponse:
    SCHEMA: ClassVar = response(9)

    throttle_time_ms: Annotated[Int32, since(3), ignorable] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], until(7)] = field(default_factory=list)
    error_code: Annotated[Int16, between(2, 7), ignorable] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], since(8)] = field(default_factory=list)
