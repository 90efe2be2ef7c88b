"""DescribeTransactions: state, timeout and partitions of transactional ids."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Int16, Int32, Int64, String, message, request, response


@message
class DescribeTransactionsRequest:
    SCHEMA: ClassVar = request(65)

    transactional_ids: list[String] = field(default_factory=list)


@message
class TopicData:
    topic: String = ""
    partitions: list[Int32] = field(default_factory=list)


@message
class TransactionState:
    error_code: Int16 = 0
    transactional_id: String = ""
    transaction_state: String = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: list[TopicData] = field(default_factory=list)


@message
class DescribeTransactionsResponse:
    SCHEMA: ClassVar = response(65)

    throttle_time_ms: Int32 = 0
    transaction_states: list[TransactionState] = field(default_factory=list)
