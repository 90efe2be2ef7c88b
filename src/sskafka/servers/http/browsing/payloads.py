"""Decode the bytes of a key, value or header, and decide how much of them is shown. Pure.

    null             no bytes: a tombstone
    json             an object or a list, as it is stored
    avro, protobuf   the fields as JSON, where a schema is known
    text             UTF-8 without NUL
    base64           everything else

Text and JSON are cut between characters, bytes between groups of three.
"""

import json
from base64 import b64encode
from collections.abc import Callable
from datetime import date, datetime, time
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from sskafka.records.avro import AvroDataError
from sskafka.servers.http.browsing.filter import JSON_BYTES_MAX, json_value

REGISTRY_PREFIX_BYTES = 5
"""A zero byte and the id of a schema, which serializers of schema registries write before the record."""

Read: TypeAlias = Callable[[bytes], Any]


class Encoding(StrEnum):
    NULL = "null"
    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    TEXT = "text"
    BASE64 = "base64"


class Schema(NamedTuple):
    """How the bytes of a key or value are read."""

    encoding: Encoding
    read: Read
    """Raises ValueError for bytes that do not follow the schema."""
    name: str = ""
    """Name of the record or message."""
    problem: str | None = None
    """Why the schema cannot be used; `read` raises the same."""


class ShownBytes(NamedTuple):
    encoding: Encoding
    data: str
    size_bytes: int
    is_truncated: bool = False
    problem: str | None = None
    """Why the bytes are not shown by their schema."""


def shown_bytes(data: bytes | None, bytes_max: int, schema: Schema | None = None) -> ShownBytes:
    """Return what at most `bytes_max` bytes of the data mean."""
    if data is None:
        return ShownBytes(Encoding.NULL, "", 0)
    problem = None
    if schema is not None:
        try:
            text = json.dumps(schema.read(data), default=_jsonable, ensure_ascii=False)
        except (ValueError, RecursionError) as error:
            problem = str(error)
        else:
            return _cut(schema.encoding, text.encode(errors="replace"), len(data), bytes_max)
    encoding = Encoding.BASE64 if b"\0" in data else _text_encoding(data)
    return _cut(encoding, data, len(data), bytes_max)._replace(problem=problem)


def _text_encoding(data: bytes) -> Encoding:
    try:
        start = data[:64].decode(errors="ignore").lstrip()
        if not start.startswith(("{", "[")) or len(data) > JSON_BYTES_MAX:
            data.decode()
            return Encoding.TEXT
    except UnicodeDecodeError:
        return Encoding.BASE64
    try:
        json_value(data)
    except UnicodeDecodeError:
        return Encoding.BASE64
    except ValueError:
        return Encoding.TEXT
    return Encoding.JSON


def _cut(encoding: Encoding, data: bytes, size_bytes: int, bytes_max: int) -> ShownBytes:
    is_truncated = len(data) > bytes_max
    if encoding is Encoding.BASE64:
        kept = data[: max(3, bytes_max - bytes_max % 3)] if is_truncated else data
        return ShownBytes(encoding, b64encode(kept).decode(), size_bytes, is_truncated)
    text = data[:bytes_max].decode(errors="ignore") if is_truncated else data.decode()
    return ShownBytes(encoding, text, size_bytes, is_truncated)


def _jsonable(value: Any) -> str:
    """Return types of Avro and Protobuf that JSON does not have as text."""
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, datetime | date | time) else str(value)


def skipping_registry_prefix(read: Read) -> Read:
    """Return a reader that also reads records after the prefix of a schema registry."""

    def read_either(data: bytes) -> Any:
        try:
            return read(data)
        except AvroDataError:
            if len(data) <= REGISTRY_PREFIX_BYTES or data[0] != 0:
                raise
        return read(data[REGISTRY_PREFIX_BYTES:])

    return read_either


def header_name(name: str) -> str:
    """Return the name as text that JSON can carry: bytes that are not UTF-8 become escapes such as `\\xff`."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")
