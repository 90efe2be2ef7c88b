"""Envelopes: requests of clients that a broker forwards to the controller.

An envelope contains a whole request, with header and message, and its answer contains a whole response. The envelope
also has the client's principal, in the form of Kafka's DefaultKafkaPrincipalBuilder, and the client's address, so that
the controller's node can authorize the request. An envelope without a principal has a request of the broker itself.
"""

from ipaddress import ip_address
from typing import Any, NamedTuple

from sskafka.model.acl import Caller
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.wire.apis import API_BY_KEY
from sskafka.wire.codec import decode, encode
from sskafka.wire.errors import MalformedMessageError
from sskafka.wire.header import (
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)
from sskafka.wire.messages.default_principal import DefaultPrincipalData
from sskafka.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from sskafka.wire.schema import Message

CLIENT_ID = "sskafka-forwarder"
NO_CORRELATION = 0


class EnvelopeContent(NamedTuple):
    """The content of an envelope."""

    key: int
    version: int
    correlation_id: int
    request: Message
    caller: Caller | None
    """None: the broker that sent the envelope asks on its own account."""


def put_into_envelope(request: Message, version: int, caller: Caller | None) -> EnvelopeRequest:
    key = request.SCHEMA.key
    assert key is not None
    client_id = CLIENT_ID if caller is None else caller.client_id
    header = encode_request_header(key, version, NO_CORRELATION, client_id)
    data = header + encode(request, version)
    if caller is None:
        return EnvelopeRequest(data, None)
    return EnvelopeRequest(data, _principal_bytes(caller), _address_bytes(caller.host))


def open_answer(envelope: EnvelopeResponse, key: int, version: int) -> Any:
    """Return the response in the answer. Raises KafkaError if the envelope itself was answered with an error."""
    if envelope.error_code != ErrorCode.NONE or envelope.response_data is None:
        raise KafkaError(ErrorCode(envelope.error_code))
    _, position = decode_response_header(key, version, envelope.response_data)
    return decode(API_BY_KEY[key].response_class(), version, envelope.response_data, position)


def open_envelope(envelope: EnvelopeRequest) -> EnvelopeContent:
    """Return the content. Raises KafkaError if it is not a valid request."""
    data = envelope.request_data
    try:
        header = decode_request_header(data)
        api = API_BY_KEY.get(header.api_key)
        if api is None or not api.has_version(header.api_version):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        request = decode(api.request_class(), header.api_version, data, header.body_position)
        caller = _caller(envelope, header.client_id or "")
    except MalformedMessageError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
    return EnvelopeContent(header.api_key, header.api_version, header.correlation_id, request, caller)


def answer_envelope(content: EnvelopeContent, response: Message) -> EnvelopeResponse:
    header = encode_response_header(content.key, content.version, content.correlation_id)
    return EnvelopeResponse(header + encode(response, content.version))


# --- who asks ---------------------------------------------------------------------------------------

_PRINCIPAL_VERSION = 0


def _principal_bytes(caller: Caller) -> bytes:
    """Encode the principal as Kafka's DefaultKafkaPrincipalBuilder does: the version of the structure comes first."""
    kind, _, name = caller.principal.partition(":")
    principal = DefaultPrincipalData(kind, name, caller.is_token_authenticated)
    return _PRINCIPAL_VERSION.to_bytes(2, "big") + encode(principal, _PRINCIPAL_VERSION)


def _address_bytes(host: str) -> bytes:
    try:
        return ip_address(host.partition("%")[0]).packed
    except ValueError:  # a connection over a local socket has no address
        return b""


def _caller(envelope: EnvelopeRequest, client_id: str) -> Caller | None:
    """Return the client that the envelope names. Raises KafkaError if its principal cannot be decoded."""
    data = envelope.request_principal
    if data is None:
        return None
    try:
        if int.from_bytes(data[:2], "big") != _PRINCIPAL_VERSION:
            raise ValueError("the version of the principal is not known")
        principal = decode(DefaultPrincipalData, _PRINCIPAL_VERSION, data, 2)
        host = str(ip_address(envelope.client_host_address)) if envelope.client_host_address else ""
    except (MalformedMessageError, ValueError, IndexError) as error:
        raise KafkaError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from error
    return Caller(f"{principal.type}:{principal.name}", host, client_id, principal.token_authenticated)
