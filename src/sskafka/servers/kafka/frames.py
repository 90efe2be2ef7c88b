"""Frames of the Kafka protocol: how a request header begins and how a response message becomes bytes to send.

    request    size int32 | api key int16 | version int16 | correlation id int32 | client id | [tags] | body
    response   size int32 | correlation id int32 | [tags] | body

Tags stand in flexible versions only; the ApiVersions response never has them, so that any client can read it.
"""

from struct import Struct
from typing import Any

from sskafka.model.errors import ErrorCode
from sskafka.wire.apis import API_BY_KEY
from sskafka.wire.codec import MalformedMessageError, encode

API_VERSIONS_KEY = 18

SIZE = Struct(">i")
REQUEST_START = Struct(">hhih")  # api key, version, correlation id, length of the client id
_RESPONSE_START = Struct(">ii")
_RESPONSE_START_TAGGED = Struct(">iib")


def response_frame(key: int, version: int, correlation_id: int, message: Any) -> bytes:
    body = encode(message, version)
    if version >= API_BY_KEY[key].flexible_from and key != API_VERSIONS_KEY:
        return _RESPONSE_START_TAGGED.pack(5 + len(body), correlation_id, 0) + body
    return _RESPONSE_START.pack(4 + len(body), correlation_id) + body


def unsupported_frame(key: int, version: int, correlation_id: int) -> bytes | None:
    """An answer that says "not served", where the response has a place for an error; None where it has none."""
    schema = API_BY_KEY.get(key)
    if schema is None or not schema.min_version <= version <= schema.max_version:
        return None
    message = schema.response_class()()
    if not hasattr(message, "error_code"):
        return None
    message.error_code = ErrorCode.UNSUPPORTED_VERSION
    return response_frame(key, version, correlation_id, message)


def skip_tags(frame: memoryview, position: int) -> int:
    """The position behind a header's tagged fields; clients send none today, so one zero byte is the rule."""
    if frame[position] == 0:
        return position + 1
    count, position = _varint(frame, position)
    for _ in range(count):
        _, position = _varint(frame, position)
        size, position = _varint(frame, position)
        position += size
        if position > len(frame):
            raise MalformedMessageError("a tagged field in the request header is longer than the request")
    return position


def _varint(frame: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = frame[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 28:
            raise MalformedMessageError("a varint in the request header has more than five bytes")
