"""ListTransactions: list the transactional ids that a broker coordinates."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Int16, Int32, Int64, String, message, request, response, since


@message
class ListTransactionsRequest:
    SCHEMA: ClassVar = request(66)

    state_filters: list[String] = field(default_factory=list)
    producer_id_filters: list[Int64] = field(default_factory=list)
    duration_filter: Annotated[Int64, since(1)] = -1
    transactional_id_pattern: Annotated[String | None, since(2)] = None


@message
class TransactionState:
    transactional_id: String = ""
    producer_id: Int64 = 0
    transaction_state: String = ""


@message
class ListTransactionsResponse:
    SCHEMA: ClassVar = response(66)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: list[String] = field(default_factory=list)
    transaction_states: list[TransactionState] = field(default_factory=list)
