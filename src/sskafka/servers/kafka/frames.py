"""Frames of the Kafka protocol: response messages as bytes, with the size prefix."""

from collections.abc import Generator
from struct import Struct

from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.request import Response
from sskafka.wire.apis import API_BY_KEY
from sskafka.wire.codec import encode, encode_in_slices
from sskafka.wire.header import encode_response_header
from sskafka.wire.layout import layout_of
from sskafka.wire.schema import Message

SIZE = Struct(">i")
KEY = Struct(">h")
REQUEST_START = Struct(">hhih")  # api key, version, correlation id, length of the client id


def response_frame(key: int, version: int, correlation_id: int, message: Message) -> bytes:
    header = encode_response_header(key, version, correlation_id)
    body = encode(message, version)
    return SIZE.pack(len(header) + len(body)) + header + body


def response_frame_in_slices(
    key: int, version: int, correlation_id: int, message: Message
) -> Generator[None, None, Response]:
    """Encode a response that may be long; yield now and then."""
    header = encode_response_header(key, version, correlation_id)
    pieces = yield from encode_in_slices(message, version)
    start = SIZE.pack(len(header) + sum(map(len, pieces))) + header
    return start + pieces[0] if len(pieces) == 1 else [start, *pieces]


def error_frame(key: int, version: int, correlation_id: int, code: ErrorCode) -> bytes | None:
    """Return a response that has only an error code, or None if that version of the response has no error code."""
    api = API_BY_KEY.get(key)
    if api is None or not api.has_version(version):
        return None
    response_class = api.response_class()
    if not any(field.name == "error_code" for field in layout_of(response_class, version).plain):
        return None
    return response_frame(key, version, correlation_id, response_class(error_code=code))
