"""ActForClient, an SSKafka API: the HTTP server of a broker states on behalf of which client it uses a connection."""

from typing import ClassVar

from sskafka.wire.schema import Int16, String, message, request, response


@message
class ActForClientRequest:
    SCHEMA: ClassVar = request(20011)

    principal: String = ""
    """For example `User:alice`."""
    client_host: String = ""
    """The address of the client as text."""
    listener_name: String = ""
    """Where the client is connected."""


@message
class ActForClientResponse:
    SCHEMA: ClassVar = response(20011)

    error_code: Int16 = 0
    error_message: String | None = None
