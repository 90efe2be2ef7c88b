"""AddPartitionsToTxn: add partitions to a transaction, or verify that they were added."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Bool, Int16, Int32, Int64, String, ignorable, message, request, response, since, until


@message
class AddPartitionsToTxnTopic:
    name: String = ""
    partitions: list[Int32] = field(default_factory=list)


@message
class AddPartitionsToTxnTransaction:
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    verify_only: Bool = False
    topics: list[AddPartitionsToTxnTopic] = field(default_factory=list)


@message
class AddPartitionsToTxnRequest:
    SCHEMA: ClassVar = request(24)

    transactions: Annotated[list[AddPartitionsToTxnTransaction], since(4)] = field(default_factory=list)
    v3_and_below_transactional_id: Annotated[String, until(3)] = ""
    v3_and_below_producer_id: Annotated[Int64, until(3)] = 0
    v3_and_below_producer_epoch: Annotated[Int16, until(3)] = 0
    v3_and_below_topics: Annotated[list[AddPartitionsToTxnTopic], until(3)] = field(default_factory=list)


@message
class AddPartitionsToTxnPartitionResult:
    partition_index: Int32 = 0
    partition_error_code: Int16 = 0


@message
class AddPartitionsToTxnTopicResult:
    name: String = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field(default_factory=list)


@message
class AddPartitionsToTxnResult:
    transactional_id: String = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = field(default_factory=list)


@message
class AddPartitionsToTxnResponse:
    SCHEMA: ClassVar = response(24)

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(4), ignorable] = 0
    results_by_transaction: Annotated[list[AddPartitionsToTxnResult], since(4)] = field(default_factory=list)
    results_by_topic_v3_and_below: Annotated[list[AddPartitionsToTxnTopicResult], until(3)] = field(
        default_factory=list
    )
