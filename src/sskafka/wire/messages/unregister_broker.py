"""UnregisterBroker: remove the registration of a broker that will not return."""

from typing import ClassVar

from sskafka.wire.schema import Int16, Int32, String, message, request, response


@message
class UnregisterBrokerRequest:
    SCHEMA: ClassVar = request(64)

    broker_id: Int32 = 0


@message
class UnregisterBrokerResponse:
    SCHEMA: ClassVar = response(64)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
