"""DeleteShareGroupOffsets: delete the start offsets of a share group."""

from dataclasses import field
from typing import ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int16, Int32, String, Uuid, message, request, response


@message
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: String = ""


@message
class DeleteShareGroupOffsetsRequest:
    SCHEMA: ClassVar = request(92)

    group_id: String = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field(default_factory=list)


@message
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: String = ""
    topic_id: Uuid = ZERO_UUID
    error_code: Int16 = 0
    error_message: String | None = None


@message
class DeleteShareGroupOffsetsResponse:
    SCHEMA: ClassVar = response(92)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field(default_factory=list)
