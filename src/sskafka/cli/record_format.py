r"""Formats with % verbs: how `consume` prints a record.

%t topic   %p partition   %o offset   %d timestamp (ms)   %e leader epoch   %i number of the record, from 1
%k key     %v value       %h headers  %K %V %H their sizes (-1: null), number of headers
%k{hex} %k{base64} %v{hex} %v{base64}          bytes as text
%d{strftime[%F %T]}                            UTC time by strftime
%h{%k=%v }                                     once for each header
%%  a percent sign      \n \t \r \\ \0 \xHH    escapes
"""

import re
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from sskafka.client.fetched import ConsumedRecord

Piece: TypeAlias = Callable[[ConsumedRecord, int], bytes]

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "0": "\0"}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_STRFTIME = re.compile(r"strftime\[(.*)\]", re.DOTALL)


class FormatError(ValueError):
    pass


class Verb(NamedTuple):
    letter: str
    argument: str | None


def parse(text: str) -> list[bytes | Verb]:
    """Return literal bytes and verbs, in order."""
    parts: list[bytes | Verb] = []
    literal = bytearray()
    at = 0
    while at < len(text):
        if text[at] == "%":
            if text[at + 1 : at + 2] == "%":
                literal += b"%"
                at += 2
                continue
            if literal:
                parts.append(bytes(literal))
                literal = bytearray()
            verb, at = _parse_verb(text, at + 1)
            parts.append(verb)
        else:
            escape = _ESCAPE.match(text, at)
            literal += _unescape(escape) if escape else text[at].encode()
            at = escape.end() if escape else at + 1
    return [*parts, bytes(literal)] if literal else parts


def unescape(text: str) -> bytes:
    """Return text with escapes but without verbs, such as a separator, as bytes."""
    return b"".join(part for part in parse(text.replace("%", "%%")) if isinstance(part, bytes))


def _unescape(escape: re.Match[str]) -> bytes:
    hexadecimal, letter = escape.groups()
    if hexadecimal:
        return bytes.fromhex(hexadecimal)
    if letter not in _ESCAPES:
        raise FormatError(f"unknown escape \\{letter}")
    return _ESCAPES[letter].encode()


def _parse_verb(text: str, at: int) -> tuple[Verb, int]:
    if at >= len(text):
        raise FormatError("the format ends after a %; write %% for a percent sign")
    letter = text[at]
    at += 1
    if text[at : at + 1] != "{":
        return Verb(letter, None), at
    depth, start = 1, at + 1
    for end in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0:
            return Verb(letter, text[start:end]), end + 1
    raise FormatError(f"the brace after %{letter} is never closed")


class RecordPrinter:
    """A compiled output format."""

    def __init__(self, text: str) -> None:
        self._pieces = [_piece(part) for part in parse(text)]
        self._count = 0

    def line(self, record: ConsumedRecord) -> bytes:
        self._count += 1
        return b"".join([piece(record, self._count) for piece in self._pieces])


def _piece(part: bytes | Verb) -> Piece:
    if isinstance(part, bytes):
        return lambda record, count: part
    if part.letter in _PLAIN and part.argument is None:
        return _PLAIN[part.letter]
    match part:
        case Verb("k", encoding):
            encode = _encoding(encoding)
            return lambda record, count: encode(record.key or b"")
        case Verb("v", encoding):
            encode = _encoding(encoding)
            return lambda record, count: encode(record.value or b"")
        case Verb("d", str(argument)):
            return _time_piece(argument)
        case Verb("h", argument):
            return _headers_piece("%k:%v " if argument is None else argument)
    known = ", ".join(f"%{letter}" for letter in "tpodeikvhKVH")
    raise FormatError(
        f"there is no %{part.letter}{'{...}' if part.argument is not None else ''}; the verbs are {known}"
    )


_PLAIN: dict[str, Piece] = {
    "t": lambda record, count: record.topic.encode(),
    "p": lambda record, count: b"%d" % record.partition,
    "o": lambda record, count: b"%d" % record.offset,
    "d": lambda record, count: b"%d" % record.timestamp,
    "e": lambda record, count: b"%d" % record.leader_epoch,
    "i": lambda record, count: b"%d" % count,
    "K": lambda record, count: b"%d" % _size(record.key),
    "V": lambda record, count: b"%d" % _size(record.value),
    "H": lambda record, count: b"%d" % len(record.headers),
}


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _encoding(name: str | None) -> Callable[[bytes], bytes]:
    encodings: dict[str | None, Callable[[bytes], bytes]] = {
        None: bytes,
        "hex": lambda data: data.hex().encode(),
        "base64": b64encode,
    }
    if name not in encodings:
        raise FormatError(f"unknown encoding {{{name}}}; choose hex or base64")
    return encodings[name]


def _time_piece(argument: str) -> Piece:
    wanted = _STRFTIME.fullmatch(argument)
    if wanted is None:
        raise FormatError(f"%d{{{argument}}} is not %d{{strftime[...]}}")
    pattern = wanted[1]
    return lambda record, count: datetime.fromtimestamp(record.timestamp / 1000, UTC).strftime(pattern).encode()


def _headers_piece(text: str) -> Piece:
    parts = parse(text)
    for part in parts:
        if isinstance(part, Verb) and part.letter not in "kv":
            raise FormatError(f"%h{{...}} has the verbs %k and %v, not %{part.letter}")

    def one(key: bytes, value: bytes) -> bytes:
        return b"".join(part if isinstance(part, bytes) else (key if part.letter == "k" else value) for part in parts)

    return lambda record, count: b"".join(
        one(key.encode(errors="surrogateescape"), value or b"") for key, value in record.headers
    )
