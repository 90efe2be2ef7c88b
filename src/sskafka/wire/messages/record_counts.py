"""RecordCounts, an SSKafka API between brokers: the number of data records in the logs of a topic."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Int16, Int32, Int64, String, message, request, response


@message
class RecordCountsRequest:
    SCHEMA: ClassVar = request(20001)

    topic: String = ""
    partitions: list[Int32] = field(default_factory=list)


@message
class PartitionRecordCount:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    records: Int64 = 0


@message
class RecordCountsResponse:
    SCHEMA: ClassVar = response(20001)

    error_code: Int16 = 0
    partitions: list[PartitionRecordCount] = field(default_factory=list)
