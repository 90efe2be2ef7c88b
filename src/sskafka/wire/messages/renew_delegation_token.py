"""RenewDelegationToken: extend the expiry time of a delegation token."""

from typing import ClassVar

from sskafka.wire.schema import Bytes, Int16, Int32, Int64, message, request, response


@message
class RenewDelegationTokenRequest:
    SCHEMA: ClassVar = request(39)

    hmac: Bytes = b""
    renew_period_ms: Int64 = 0


@message
class RenewDelegationTokenResponse:
    SCHEMA: ClassVar = response(39)

    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0
