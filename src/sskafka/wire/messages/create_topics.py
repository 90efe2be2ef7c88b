"""CreateTopics: create topics with automatic or manual replica assignments."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import (
    Bool,
    Int8,
    Int16,
    Int32,
    String,
    Uuid,
    ignorable,
    message,
    request,
    response,
    since,
    tagged,
)


@message
class CreatableReplicaAssignment:
    partition_index: Int32 = 0
    broker_ids: list[Int32] = field(default_factory=list)


@message
class CreatableTopicConfig:
    name: String = ""
    value: String | None = ""


@message
class CreatableTopic:
    name: String = ""
    num_partitions: Int32 = 0
    replication_factor: Int16 = 0
    assignments: list[CreatableReplicaAssignment] = field(default_factory=list)
    configs: list[CreatableTopicConfig] = field(default_factory=list)


@message
class CreateTopicsRequest:
    SCHEMA: ClassVar = request(19)

    topics: list[CreatableTopic] = field(default_factory=list)
    timeout_ms: Int32 = 60000
    validate_only: Bool = False


@message
class CreatableTopicConfigs:
    name: String = ""
    value: String | None = ""
    read_only: Bool = False
    config_source: Int8 = -1
    is_sensitive: Bool = False


@message
class CreatableTopicResult:
    name: String = ""
    topic_id: Annotated[Uuid, since(7), ignorable] = ZERO_UUID
    error_code: Int16 = 0
    error_message: String | None = ""
    topic_config_error_code: Annotated[Int16, tagged(0, since=5), ignorable] = 0
    num_partitions: Annotated[Int32, since(5), ignorable] = -1
    replication_factor: Annotated[Int16, since(5), ignorable] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, since(5), ignorable] = field(default_factory=list)


@message
class CreateTopicsResponse:
    SCHEMA: ClassVar = response(19)

    throttle_time_ms: Int32 = 0
    topics: list[CreatableTopicResult] = field(default_factory=list)
