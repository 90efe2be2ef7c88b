"""FlushLogs, an SSKafka API: flush all logs of a broker to disk."""

from typing import ClassVar

from sskafka.wire.schema import Int16, String, message, request, response


@message
class FlushLogsRequest:
    SCHEMA: ClassVar = request(20003)


@message
class FlushLogsResponse:
    SCHEMA: ClassVar = response(20003)

    error_code: Int16 = 0
    error_message: String | None = None
