"""Request and response headers: the bytes between the size of a frame and its message.

    request    v1   api key int16 | api version int16 | correlation id int32 | client id: int16 length or -1, text
               v2   the same, then tagged fields
    response   v0   correlation id int32
               v1   the same, then tagged fields

A header has tagged fields if its message version is flexible, with one exception: the response to ApiVersions always
has header v0, because the client does not know yet which versions the broker supports. The client id has an int16
length in v2, too.
"""

from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import NamedTuple

from sskafka.model.buffers import Buffer
from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.errors import MalformedMessageError
from sskafka.wire.varint import skip_tagged_fields

_REQUEST = Struct(">hhih")
_CORRELATION_ID = Struct(">i")


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int
    """Position of the message."""


def request_header_version(api_key: int, api_version: int) -> int:
    """Return 2 (with tagged fields) or 1. Unknown APIs have 1, which is enough to read the correlation id."""
    api = API_BY_KEY.get(api_key)
    return 2 if api is not None and api_version >= api.flexible_from else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """Return 1 (with tagged fields) or 0."""
    return 0 if api_key == ApiKey.API_VERSIONS else request_header_version(api_key, api_version) - 1


def encode_request_header(api_key: int, api_version: int, correlation_id: int, client_id: str | None) -> bytes:
    text = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(text)
    tags = b"\0" if request_header_version(api_key, api_version) == 2 else b""
    return _REQUEST.pack(api_key, api_version, correlation_id, length) + text + tags


def decode_request_header(buffer: Buffer, position: int = 0) -> RequestHeader:
    try:
        return _decode_request_header(memoryview(buffer), position)
    except (StructError, IndexError, UnicodeDecodeError) as error:
        raise MalformedMessageError(f"request header: {error}") from error


def _decode_request_header(buffer: memoryview, position: int) -> RequestHeader:
    api_key, api_version, correlation_id, length = _REQUEST.unpack_from(buffer, position)
    position += _REQUEST.size
    client_id = None
    if length >= 0:
        if length > len(buffer) - position:
            raise MalformedMessageError(f"request header: the client id has {length} bytes, more than are left")
        client_id = buffer[position : position + length].tobytes().decode()
        position += length
    if request_header_version(api_key, api_version) == 2:
        position = skip_tagged_fields(buffer, position)
    return RequestHeader(api_key, api_version, correlation_id, client_id, position)


def encode_response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    tags = b"\0" if response_header_version(api_key, api_version) == 1 else b""
    return _CORRELATION_ID.pack(correlation_id) + tags


def decode_response_header(api_key: int, api_version: int, buffer: Buffer, position: int = 0) -> tuple[int, int]:
    """Return the correlation id and the position of the message."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(buffer, position)
        position += _CORRELATION_ID.size
        if response_header_version(api_key, api_version) == 1:
            position = skip_tagged_fields(buffer, position)
    except (StructError, IndexError) as error:
        raise MalformedMessageError(f"response header: {error}") from error
    return correlation_id, position
