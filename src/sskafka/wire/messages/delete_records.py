"""DeleteRecords: delete the records of partitions below an offset."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Int16, Int32, Int64, String, message, request, response


@message
class DeleteRecordsPartition:
    partition_index: Int32 = 0
    offset: Int64 = 0


@message
class DeleteRecordsTopic:
    name: String = ""
    partitions: list[DeleteRecordsPartition] = field(default_factory=list)


@message
class DeleteRecordsRequest:
    SCHEMA: ClassVar = request(21)

    topics: list[DeleteRecordsTopic] = field(default_factory=list)
    timeout_ms: Int32 = 0


@message
class DeleteRecordsPartitionResult:
    partition_index: Int32 = 0
    low_watermark: Int64 = 0
    error_code: Int16 = 0


@message
class DeleteRecordsTopicResult:
    name: String = ""
    partitions: list[DeleteRecordsPartitionResult] = field(default_factory=list)


@message
class DeleteRecordsResponse:
    SCHEMA: ClassVar = response(21)

    throttle_time_ms: Int32 = 0
    topics: list[DeleteRecordsTopicResult] = field(default_factory=list)
