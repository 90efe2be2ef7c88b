"""Envelopes: a client's request as the broker it was sent to passes it on to the controller.

Inside stands a whole request, header and message, and in the answer a whole response. The broker that passes it on has
checked what its client may do; the principal is not sent along, and the controller trusts its brokers.
"""

from typing import Any, NamedTuple

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
from sskafka.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from sskafka.wire.schema import Message

CLIENT_ID = "sskafka-forwarder"
NO_CORRELATION = 0


class Letter(NamedTuple):
    """What was in an envelope."""

    key: int
    version: int
    correlation_id: int
    request: Message


def put_into_envelope(request: Message, version: int) -> EnvelopeRequest:
    key = request.SCHEMA.key
    assert key is not None
    header = encode_request_header(key, version, NO_CORRELATION, CLIENT_ID)
    return EnvelopeRequest(header + encode(request, version), None)


def open_answer(envelope: EnvelopeResponse, key: int, version: int) -> Any:
    """Raises KafkaError when the envelope itself came back with an error."""
    if envelope.error_code != ErrorCode.NONE or envelope.response_data is None:
        raise KafkaError(ErrorCode(envelope.error_code))
    _, position = decode_response_header(key, version, envelope.response_data)
    return decode(API_BY_KEY[key].response_class(), version, envelope.response_data, position)


def open_envelope(envelope: EnvelopeRequest) -> Letter:
    """Raises KafkaError when there is no readable request in it."""
    data = envelope.request_data
    try:
        header = decode_request_header(data)
        api = API_BY_KEY.get(header.api_key)
        if api is None or not api.has_version(header.api_version):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        request = decode(api.request_class(), header.api_version, data, header.body_position)
    except MalformedMessageError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
    return Letter(header.api_key, header.api_version, header.correlation_id, request)


def answer_envelope(letter: Letter, response: Message) -> EnvelopeResponse:
    header = encode_response_header(letter.key, letter.version, letter.correlation_id)
    return EnvelopeResponse(header + encode(response, letter.version))
