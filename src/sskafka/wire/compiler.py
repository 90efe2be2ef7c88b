"""Compile the encoder or decoder of one message version on its first use."""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from sskafka.wire.decoder import write_decoder
from sskafka.wire.encoder import write_encoder
from sskafka.wire.errors import UnsupportedVersionError
from sskafka.wire.schema import Message
from sskafka.wire.source import SourceWriter

M = TypeVar("M", bound=Message)


@cache
def compiled_encoder(cls: type[Message], version: int) -> Callable[[Message], bytes]:
    encode: Callable[[Message], bytes] = _compile(write_encoder, cls, version)["encode"]
    return encode


@cache
def compiled_decoder(cls: type[M], version: int) -> Callable[[memoryview, int], tuple[M, int]]:
    """Return a function from a memoryview and a position to the message and the position after it."""
    decode: Callable[[memoryview, int], tuple[M, int]] = _compile(write_decoder, cls, version)["decode"]
    return decode


def _compile(write: Callable[[type[Any], int, bool], SourceWriter], cls: type[Message], version: int) -> dict[str, Any]:
    schema = cls.SCHEMA
    if version not in schema.versions:
        first, last = schema.versions
        raise UnsupportedVersionError(f"{cls.__name__} has versions {first} to {last}, not {version}")
    source = write(cls, version, schema.is_flexible(version))
    exec(compile(source.text(), f"<{write.__name__} {cls.__name__} v{version}>", "exec"), source.globals)
    return source.globals
