"""EndTxn: commit or abort a transaction."""

from typing import Annotated, ClassVar

from sskafka.wire.schema import Bool, Int16, Int32, Int64, String, ignorable, message, request, response, since


@message
class EndTxnRequest:
    SCHEMA: ClassVar = request(26)

    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    committed: Bool = False


@message
class EndTxnResponse:
    SCHEMA: ClassVar = response(26)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Annotated[Int64, since(5), ignorable] = -1
    producer_epoch: Annotated[Int16, since(5), ignorable] = -1
