"""Compile the encoder or decoder of one message version on its first use."""

from collections.abc import Callable, Generator
from functools import cache
from typing import Any, TypeVar

from sskafka.wire.decoder import write_decoder, write_sliced_decoder
from sskafka.wire.encoder import write_element_encoder, write_encoder, write_sliced_encoder
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


@cache
def compiled_sliced_decoder(
    cls: type[M], version: int
) -> Callable[[memoryview, int], Generator[None, None, tuple[M, int]]]:
    """Return the same as a generator, which yields after every few kilobytes."""
    decode: Callable[[memoryview, int], Generator[None, None, tuple[M, int]]]
    decode = _compile(write_sliced_decoder, cls, version)["decode"]
    return decode


@cache
def compiled_sliced_encoder(
    cls: type[Message], version: int
) -> Callable[[Message], Generator[None, None, list[bytes]]]:
    encode: Callable[[Message], Generator[None, None, list[bytes]]]
    encode = _compile(write_sliced_encoder, cls, version)["encode"]
    return encode


@cache
def compiled_element_encoder(cls: Any, version: int, flexible: bool) -> Callable[[Any], bytes]:
    encode: Callable[[Any], bytes] = _run(write_element_encoder(cls, version, flexible), cls, version)["encode"]
    return encode


def _compile(write: Callable[[type[Any], int, bool], SourceWriter], cls: type[Message], version: int) -> dict[str, Any]:
    schema = cls.SCHEMA
    if version not in schema.versions:
        first, last = schema.versions
        raise UnsupportedVersionError(f"{cls.__name__} has versions {first} to {last}, not {version}")
    return _run(write(cls, version, schema.is_flexible(version)), cls, version)


def _run(source: SourceWriter, cls: type[Any], version: int) -> dict[str, Any]:
    exec(compile(source.text(), f"<codec of {cls.__name__} v{version}>", "exec"), source.globals)
    return source.globals
