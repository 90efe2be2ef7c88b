"""SaslAuthenticate: one step of a SASL exchange."""

from typing import Annotated, ClassVar

from sskafka.wire.schema import Bytes, Int16, Int64, String, ignorable, message, request, response, since


@message
class SaslAuthenticateRequest:
    SCHEMA: ClassVar = request(36)

    auth_bytes: Bytes = b""


@message
class SaslAuthenticateResponse:
    SCHEMA: ClassVar = response(36)

    error_code: Int16 = 0
    error_message: String | None = ""
    auth_bytes: Bytes = b""
    session_lifetime_ms: Annotated[Int64, since(1), ignorable] = 0
