"""The principal in an Envelope request."""

from typing import ClassVar

from sskafka.wire.schema import Bool, String, data, message


@message
class DefaultPrincipalData:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0)

    type: String = ""
    name: String = ""
    token_authenticated: Bool = False
