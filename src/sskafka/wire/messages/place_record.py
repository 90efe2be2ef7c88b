"""PlaceRecord, an SSKafka API: the leader of a topic's partition 0 chooses the partition of a record without a key."""

from typing import ClassVar

from sskafka.wire.schema import Bytes, Int16, Int32, Int64, String, message, request, response


@message
class PlaceRecordRequest:
    SCHEMA: ClassVar = request(20002)

    topic: String = ""
    data: Bytes = b""


@message
class PlaceRecordResponse:
    SCHEMA: ClassVar = response(20002)

    error_code: Int16 = 0
    error_message: String | None = None
    partition_index: Int32 = -1
    offset: Int64 = -1
