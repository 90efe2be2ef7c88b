"""Messages to bytes and back.

The first use of a version of a message compiles an encoder or decoder for it (about a millisecond); later uses run that
code. What a decoder raises on bad input is MalformedMessageError and nothing else.
"""

import struct
from typing import TypeVar

from sskafka.model.buffers import Buffer
from sskafka.wire.compiler import compiled_decoder, compiled_encoder
from sskafka.wire.errors import MalformedMessageError, UnencodableMessageError, UnsupportedVersionError
from sskafka.wire.schema import Message

__all__ = [
    "MalformedMessageError",
    "UnencodableMessageError",
    "UnsupportedVersionError",
    "decode",
    "decode_from",
    "encode",
]

M = TypeVar("M", bound=Message)


def encode(message: Message, version: int) -> bytes:
    """Raises UnencodableMessageError where a value does not fit, or is lost because the version lacks its field."""
    cls = type(message)
    try:
        return compiled_encoder(cls, version)(message)
    except (struct.error, TypeError, ValueError, AttributeError, UnencodableMessageError) as error:
        raise UnencodableMessageError(f"{cls.__name__} v{version}: {error}") from error


def decode(cls: type[M], version: int, buffer: Buffer, position: int = 0, *, allow_trailing: bool = False) -> M:
    """The message that fills `buffer` from `position` on; `allow_trailing` admits other bytes behind it."""
    message, end = decode_from(cls, version, buffer, position)
    if end != len(buffer) and not allow_trailing:
        raise MalformedMessageError(f"{cls.__name__} v{version}: {len(buffer) - end} bytes behind the message")
    return message


def decode_from(cls: type[M], version: int, buffer: Buffer, position: int = 0) -> tuple[M, int]:
    """The message at `position`, and the position after it."""
    decoder = compiled_decoder(cls, version)
    try:
        return decoder(memoryview(buffer), position)
    except (struct.error, IndexError, UnicodeDecodeError, MalformedMessageError) as error:
        raise MalformedMessageError(f"{cls.__name__} v{version}: {error}") from error
