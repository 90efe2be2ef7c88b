"""Encode and decode messages.

The first use of a message version compiles its encoder or decoder (about a millisecond); later uses run the compiled
code. For invalid input, decoding raises only MalformedMessageError.

`decode_in_slices` and `encode_in_slices` are for long messages: they yield now and then, so that the caller can do
other work in between.
"""

import struct
from collections.abc import Generator
from typing import Any, TypeVar

from sskafka.model.buffers import Buffer
from sskafka.wire.compiler import (
    compiled_decoder,
    compiled_element_encoder,
    compiled_encoder,
    compiled_sliced_decoder,
    compiled_sliced_encoder,
)
from sskafka.wire.errors import MalformedMessageError, UnencodableMessageError, UnsupportedVersionError
from sskafka.wire.schema import Message

__all__ = [
    "MalformedMessageError",
    "UnencodableMessageError",
    "UnsupportedVersionError",
    "decode",
    "decode_from",
    "decode_in_slices",
    "encode",
    "encode_element",
    "encode_in_slices",
]

M = TypeVar("M", bound=Message)
_UNENCODABLE = (struct.error, TypeError, ValueError, AttributeError, UnencodableMessageError)
_MALFORMED = (struct.error, IndexError, UnicodeDecodeError, MalformedMessageError)


def encode(message: Message, version: int) -> bytes:
    """Encode a message; raise UnencodableMessageError if a value is out of range or its field is not in the version."""
    cls = type(message)
    try:
        return compiled_encoder(cls, version)(message)
    except _UNENCODABLE as error:
        raise UnencodableMessageError(f"{cls.__name__} v{version}: {error}") from error


def encode_element(element: Any, version: int, flexible: bool) -> bytes:
    """Encode a struct of a message, for `encode_in_slices`."""
    cls: Any = type(element)
    try:
        return compiled_element_encoder(cls, version, flexible)(element)
    except _UNENCODABLE as error:
        raise UnencodableMessageError(f"{type(element).__name__} v{version}: {error}") from error


def encode_in_slices(message: Message, version: int) -> Generator[None, None, list[bytes]]:
    """Encode a message; return it in pieces."""
    cls = type(message)
    try:
        return (yield from compiled_sliced_encoder(cls, version)(message))
    except _UNENCODABLE as error:
        raise UnencodableMessageError(f"{cls.__name__} v{version}: {error}") from error


def decode(cls: type[M], version: int, buffer: Buffer, position: int = 0, *, allow_trailing: bool = False) -> M:
    """Decode the message that fills `buffer` from `position` on; `allow_trailing` permits further bytes after it."""
    message, end = decode_from(cls, version, buffer, position)
    if end != len(buffer) and not allow_trailing:
        raise MalformedMessageError(f"{cls.__name__} v{version}: {len(buffer) - end} bytes after the message")
    return message


def decode_from(cls: type[M], version: int, buffer: Buffer, position: int = 0) -> tuple[M, int]:
    """Return the message at `position`, and the position after it."""
    decoder = compiled_decoder(cls, version)
    try:
        return decoder(memoryview(buffer), position)
    except _MALFORMED as error:
        raise MalformedMessageError(f"{cls.__name__} v{version}: {error}") from error


def decode_in_slices(cls: type[M], version: int, buffer: Buffer, position: int = 0) -> Generator[None, None, M]:
    """Decode the message at `position`; further bytes may follow it. `buffer` must not change before the last slice."""
    try:
        decoded: tuple[M, int] = yield from compiled_sliced_decoder(cls, version)(memoryview(buffer), position)
    except _MALFORMED as error:
        raise MalformedMessageError(f"{cls.__name__} v{version}: {error}") from error
    return decoded[0]
