"""AddOffsetsToTxn: add the offsets of a group to a transaction."""

from typing import ClassVar

from sskafka.wire.schema import Int16, Int32, Int64, String, message, request, response


@message
class AddOffsetsToTxnRequest:
    SCHEMA: ClassVar = request(25)

    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    group_id: String = ""


@message
class AddOffsetsToTxnResponse:
    SCHEMA: ClassVar = response(25)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
