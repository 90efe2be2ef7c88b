"""Envelope: a broker forwards a client's request and principal to the controller."""

from typing import ClassVar

from sskafka.wire.schema import Bytes, Int16, message, request, response


@message
class EnvelopeRequest:
    SCHEMA: ClassVar = request(58)

    request_data: Bytes = b""
    request_principal: Bytes | None = b""
    client_host_address: Bytes = b""


@message
class EnvelopeResponse:
    SCHEMA: ClassVar = response(58)

    response_data: Bytes | None = None
    error_code: Int16 = 0
