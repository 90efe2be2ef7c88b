"""DeleteTopics: delete topics by name or id."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import (
    Int16,
    Int32,
    String,
    Uuid,
    ignorable,
    message,
    nullable,
    request,
    response,
    since,
    until,
)


@message
class DeleteTopicState:
    name: String | None = None
    topic_id: Uuid = ZERO_UUID


@message
class DeleteTopicsRequest:
    SCHEMA: ClassVar = request(20)

    topics: Annotated[list[DeleteTopicState], since(6)] = field(default_factory=list)
    topic_names: Annotated[list[String], until(5), ignorable] = field(default_factory=list)
    timeout_ms: Int32 = 0


@message
class DeletableTopicResult:
    name: Annotated[String | None, nullable(since=6)] = ""
    topic_id: Annotated[Uuid, since(6), ignorable] = ZERO_UUID
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(5), ignorable] = None


@message
class DeleteTopicsResponse:
    SCHEMA: ClassVar = response(20)

    throttle_time_ms: Int32 = 0
    responses: list[DeletableTopicResult] = field(default_factory=list)
