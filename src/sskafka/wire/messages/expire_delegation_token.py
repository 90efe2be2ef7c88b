"""ExpireDelegationToken: change the expiry time of a delegation token, or expire it at once."""

from typing import ClassVar

from sskafka.wire.schema import Bytes, Int16, Int32, Int64, message, request, response


@message
class ExpireDelegationTokenRequest:
    SCHEMA: ClassVar = request(40)

    hmac: Bytes = b""
    expiry_time_period_ms: Int64 = 0


@message
class ExpireDelegationTokenResponse:
    SCHEMA: ClassVar = response(40)

    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0
