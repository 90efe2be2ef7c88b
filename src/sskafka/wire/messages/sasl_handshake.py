"""SaslHandshake: choose the SASL mechanism of a connection."""

from dataclasses import dataclass, field
from typing import ClassVar

from sskafka.wire.schema import NEVER, Int16, String, request, response


@dataclass(slots=True)
class SaslHandshakeRequest:
    SCHEMA: ClassVar = request(17, versions=(0, 1), flexible_from=NEVER)

    mechanism: String = ""


@dataclass(slots=True)
class SaslHandshakeResponse:
    SCHEMA: ClassVar = response(17, versions=(0, 1), flexible_from=NEVER)

    error_code: Int16 = 0
    mechanisms: list[String] = field(default_factory=list)
