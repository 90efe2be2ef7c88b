"""InitProducerId: assign a producer id and epoch; earlier producers with the same transactional id are fenced."""

from typing import Annotated, ClassVar

from sskafka.wire.schema import Bool, Int16, Int32, Int64, String, ignorable, message, request, response, since


@message
class InitProducerIdRequest:
    SCHEMA: ClassVar = request(22)

    transactional_id: String | None = ""
    transaction_timeout_ms: Int32 = 0
    producer_id: Annotated[Int64, since(3)] = -1
    producer_epoch: Annotated[Int16, since(3)] = -1
    enable2_pc: Annotated[Bool, since(6)] = False
    keep_prepared_txn: Annotated[Bool, since(6)] = False


@message
class InitProducerIdResponse:
    SCHEMA: ClassVar = response(22)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0
    ongoing_txn_producer_id: Annotated[Int64, since(6), ignorable] = -1
    ongoing_txn_producer_epoch: Annotated[Int16, since(6), ignorable] = -1
