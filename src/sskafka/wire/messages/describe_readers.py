"""DescribeReaders, an API of our own: how far clients have fetched on this broker, whether or not they commit anything.

What was fetched need not have been processed.
"""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Int16, Int32, Int64, String, message, request, response


@message
class DescribeReadersRequest:
    """Without topics: all of them."""

    SCHEMA: ClassVar = request(20005)

    topics: list[String] | None = None


@message
class ReaderPosition:
    client_id: String = ""
    topic: String = ""
    partition: Int32 = 0
    fetch_offset: Int64 = 0
    """Of the next record that the client asked for."""
    log_end_offset: Int64 = 0
    """Up to which records may be read."""
    age_ms: Int64 = 0
    """Since the client asked for it."""


@message
class DescribeReadersResponse:
    SCHEMA: ClassVar = response(20005)

    error_code: Int16 = 0
    readers: list[ReaderPosition] = field(default_factory=list)
