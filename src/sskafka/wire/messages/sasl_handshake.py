"""SaslHandshake: choose the SASL mechanism of a connection."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Int16, String, message, request, response


@message
class SaslHandshakeRequest:
    SCHEMA: ClassVar = request(17)

    mechanism: String = ""


@message
class SaslHandshakeResponse:
    SCHEMA: ClassVar = response(17)

    error_code: Int16 = 0
    mechanisms: list[String] = field(default_factory=list)
