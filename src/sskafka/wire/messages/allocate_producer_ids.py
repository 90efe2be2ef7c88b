"""AllocateProducerIds: a broker gets a block of producer ids from the controller."""

from typing import ClassVar

from sskafka.wire.schema import Int16, Int32, Int64, message, request, response


@message
class AllocateProducerIdsRequest:
    SCHEMA: ClassVar = request(67)

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1


@message
class AllocateProducerIdsResponse:
    SCHEMA: ClassVar = response(67)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id_start: Int64 = 0
    producer_id_len: Int32 = 0
