"""SaslHandshake and SaslAuthenticate. The connection of a SASL listener answers them (security/sasl_connection.py).

On other listeners they are refused as Apache Kafka refuses them after authentication.
"""

from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.frames import response_frame
from sskafka.servers.kafka.request import Request, Response
from sskafka.servers.kafka.security.sasl_connection import SaslConnection
from sskafka.servers.kafka.sliced_handlers import decode_request
from sskafka.wire.apis import ApiKey
from sskafka.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from sskafka.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handshake(request: Request) -> Response | None:
    message = decode_request(SaslHandshakeRequest, request)
    if isinstance(request.connection, SaslConnection):
        return request.connection.handshake(message, request)
    refusal = SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)
    return response_frame(ApiKey.SASL_HANDSHAKE, request.version, request.correlation_id, refusal)


def authenticate(request: Request) -> Response | None:
    message = decode_request(SaslAuthenticateRequest, request)
    if isinstance(request.connection, SaslConnection):
        return request.connection.authenticate(message, request)
    text = "SaslAuthenticate request received after successful authentication"
    refusal = SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, text)
    return response_frame(ApiKey.SASL_AUTHENTICATE, request.version, request.correlation_id, refusal)
