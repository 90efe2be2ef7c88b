"""DescribeReaders, an SSKafka API: fetch positions of clients on this broker, whether or not they commit offsets.

Fetched records have not necessarily been processed.
"""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Int16, Int32, Int64, String, message, request, response


@message
class DescribeReadersRequest:
    """Null means all topics."""

    SCHEMA: ClassVar = request(20005)

    topics: list[String] | None = None


@message
class ReaderPosition:
    client_id: String = ""
    topic: String = ""
    partition: Int32 = 0
    fetch_offset: Int64 = 0
    """Offset of the client's last fetch request."""
    log_end_offset: Int64 = 0
    """End of the records that the client may read."""
    age_ms: Int64 = 0
    """Time since the client's last fetch request."""


@message
class DescribeReadersResponse:
    SCHEMA: ClassVar = response(20005)

    error_code: Int16 = 0
    readers: list[ReaderPosition] = field(default_factory=list)
