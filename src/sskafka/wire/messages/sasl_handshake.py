"""SaslHandshake: choose the SASL mechanism of a connection."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import NEVER, Int16, String, message, request, response


@message
class SaslHandshakeRequest:
    SCHEMA: ClassVar = request(17, versions=(0, 1), flexible_from=NEVER)

    mechanism: String = ""


@message
class SaslHandshakeResponse:
    SCHEMA: ClassVar = response(17, versions=(0, 1), flexible_from=NEVER)

    error_code: Int16 = 0
    mechanisms: list[String] = field(default_factory=list)
