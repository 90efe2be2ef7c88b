"""Encode and decode messages.

The first use of a message version compiles its encoder or decoder (about a millisecond); later uses run the compiled
code. For invalid input, decoding raises only MalformedMessageError.
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
    """Encode a message; raise UnencodableMessageError if a value is out of range or its field is not in the version."""
    cls = type(message)
    try:
        return compiled_encoder(cls, version)(message)
    except (struct.error, TypeError, ValueError, AttributeError, UnencodableMessageError) as error:
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
    except (struct.error, IndexError, UnicodeDecodeError, MalformedMessageError) as error:
        raise MalformedMessageError(f"{cls.__name__} v{version}: {error}") from error
