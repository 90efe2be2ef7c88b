"""WriteTxnMarkers: the transaction coordinator tells partition leaders to write commit or abort markers."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Bool, Int8, Int16, Int32, Int64, String, ignorable, message, request, response, since


@message
class WritableTxnMarkerTopic:
    name: String = ""
    partition_indexes: list[Int32] = field(default_factory=list)


@message
class WritableTxnMarker:
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    transaction_result: Bool = False
    topics: list[WritableTxnMarkerTopic] = field(default_factory=list)
    coordinator_epoch: Int32 = 0
    transaction_version: Annotated[Int8, since(2), ignorable] = 0


@message
class WriteTxnMarkersRequest:
    SCHEMA: ClassVar = request(27)

    markers: list[WritableTxnMarker] = field(default_factory=list)


@message
class WritableTxnMarkerPartitionResult:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@message
class WritableTxnMarkerTopicResult:
    name: String = ""
    partitions: list[WritableTxnMarkerPartitionResult] = field(default_factory=list)


@message
class WritableTxnMarkerResult:
    producer_id: Int64 = 0
    topics: list[WritableTxnMarkerTopicResult] = field(default_factory=list)


@message
class WriteTxnMarkersResponse:
    SCHEMA: ClassVar = response(27)

    markers: list[WritableTxnMarkerResult] = field(default_factory=list)
