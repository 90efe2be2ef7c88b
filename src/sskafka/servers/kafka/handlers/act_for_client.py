"""ActForClient: from now on, the requests of this connection are those of a client of the HTTP server.

A client that may send this request can act as any principal, as with Envelope requests, so it needs CLUSTER_ACTION. The
connection has the rights, the quotas and the audit lines of the client until it is closed.
"""

from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.request import Request
from sskafka.wire.messages.act_for_client import ActForClientRequest, ActForClientResponse


class ActForClientHandler:
    def act_for_client(self, message: ActForClientRequest, request: Request) -> ActForClientResponse:
        kind, _, name = message.principal.partition(":")
        if not kind or not name or not message.listener_name:
            text = "ActForClient needs a principal such as User:alice, and the listener of the client"
            return ActForClientResponse(ErrorCode.INVALID_REQUEST, text)
        connection = request.connection
        connection.principal = message.principal
        connection.host = message.client_host
        connection.client_listener = message.listener_name
        return ActForClientResponse()
