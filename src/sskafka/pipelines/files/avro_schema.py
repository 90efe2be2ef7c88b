"""Avro schemas: from their JSON to Spark's types, and a decoder of Avro's binary form.

Spark's own Avro support is a jar that pip does not bring. A decoder is built once a schema as a closure over closures:
each reads one value at a position and returns it with the position behind it.
"""

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from sskafka.records.batch import CorruptBatchError
from sskafka.records.varint import INT64_BYTES_MAX, read_varint

Decoder: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
AvroType: TypeAlias = str | list[Any] | dict[str, Any]

_PRIMITIVES = {
    "null": "string",
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
_LOGICAL = {"timestamp-millis": "timestamp", "timestamp-micros": "timestamp", "date": "date"}


class AvroSchemaError(ValueError):
    """A schema that cannot be read."""


class AvroDataError(ValueError):
    """Bytes that do not follow the schema."""


def parse_avro_schema(text: str) -> dict[str, Any]:
    """The schema of a record, checked all the way down."""
    try:
        schema = json.loads(text)
    except json.JSONDecodeError as error:
        raise AvroSchemaError(f"the Avro schema is not JSON: {error}") from None
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise AvroSchemaError('the Avro schema must be a record: {"type": "record", "name": ..., "fields": [...]}')
    spark_columns(schema)
    decoder_of(schema)
    return schema


def spark_columns(schema: dict[str, Any]) -> str:
    """The record's fields as Spark's DDL."""
    names: dict[str, AvroType] = {}
    return ", ".join(f"`{name}` {_spark_type(kind, names)}" for name, kind in _fields(schema))


def _fields(schema: Mapping[str, Any]) -> list[tuple[str, AvroType]]:
    fields = schema.get("fields")
    if not isinstance(fields, list):
        raise AvroSchemaError(f"the record {schema.get('name')!r} has no list of fields")
    try:
        return [(field["name"], field["type"]) for field in fields]
    except (KeyError, TypeError):
        raise AvroSchemaError(f"a field of {schema.get('name')!r} lacks its name or type") from None


def _spark_type(kind: AvroType, names: dict[str, AvroType]) -> str:
    if isinstance(kind, list):
        return _spark_type(_only_branch(kind), names)
    if isinstance(kind, str):
        if kind in names:
            return _spark_type(names[kind], names)
        if kind not in _PRIMITIVES:
            raise AvroSchemaError(f"there is no Avro type {kind!r}")
        return _PRIMITIVES[kind]
    logical = _LOGICAL.get(kind.get("logicalType", ""))
    if logical:
        return logical
    return _complex_spark_type(kind, names)


def _complex_spark_type(kind: dict[str, Any], names: dict[str, AvroType]) -> str:
    match kind.get("type"):
        case "record":
            names[kind.get("name", "")] = kind
            inner = ", ".join(f"`{name}`: {_spark_type(of, names)}" for name, of in _fields(kind))
            return f"struct<{inner}>"
        case "array":
            return f"array<{_spark_type(kind['items'], names)}>"
        case "map":
            return f"map<string,{_spark_type(kind['values'], names)}>"
        case "enum":
            names[kind.get("name", "")] = kind
            return "string"
        case "fixed":
            names[kind.get("name", "")] = kind
            return "binary"
        case other:
            return _spark_type(other or "", names)


def _only_branch(union: list[Any]) -> AvroType:
    branches: list[AvroType] = [branch for branch in union if branch != "null"]
    if len(branches) != 1:
        raise AvroSchemaError(f"the union {union} has {len(branches)} branches beside null; only one is supported")
    return branches[0]


# Decoding


def decoder_of(schema: dict[str, Any]) -> Callable[[bytes], dict[str, Any]]:
    """A function from a record's bytes to its fields; it raises AvroDataError for bytes that do not fit."""
    decode = _decoder(schema, {})

    def decode_record(data: bytes) -> dict[str, Any]:
        try:
            fields, end = decode(data, 0)
        except (IndexError, struct.error, UnicodeDecodeError, CorruptBatchError) as error:
            raise AvroDataError(f"the bytes do not follow the schema: {error}") from None
        if end != len(data):
            raise AvroDataError(f"{len(data) - end} bytes follow the record: it was written with another schema")
        return dict(fields)

    return decode_record


def _decoder(kind: AvroType, names: dict[str, Decoder]) -> Decoder:
    if isinstance(kind, list):
        return _union(kind, names)
    if isinstance(kind, str):
        return names[kind] if kind in names else _primitive(kind)
    match kind.get("type"):
        case "record":
            return _record(kind, names)
        case "array":
            return _blocks(_decoder(kind["items"], names), as_map=False)
        case "map":
            return _blocks(_decoder(kind["values"], names), as_map=True)
        case "enum":
            decoder = names[kind.get("name", "")] = _enum(kind["symbols"])
            return decoder
        case "fixed":
            decoder = names[kind.get("name", "")] = _fixed(kind["size"])
            return decoder
        case other:
            return _logical(_decoder(other or "", names), kind.get("logicalType", ""))


def _primitive(kind: str) -> Decoder:
    decoders: dict[str, Decoder] = {
        "null": lambda data, at: (None, at),
        "boolean": lambda data, at: (data[at] != 0, at + 1),
        "int": _long,
        "long": _long,
        "float": lambda data, at: (struct.unpack_from("<f", data, at)[0], at + 4),
        "double": lambda data, at: (struct.unpack_from("<d", data, at)[0], at + 8),
        "bytes": _bytes,
        "string": _string,
    }
    if kind not in decoders:
        raise AvroSchemaError(f"there is no Avro type {kind!r}")
    return decoders[kind]


def _long(data: bytes, at: int) -> tuple[int, int]:
    return read_varint(data, at, INT64_BYTES_MAX)


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = read_varint(data, at, INT64_BYTES_MAX)
    if length < 0 or at + length > len(data):
        raise AvroDataError(f"{length} bytes are announced, {len(data) - at} are left")
    return data[at : at + length], at + length


def _string(data: bytes, at: int) -> tuple[str, int]:
    content, at = _bytes(data, at)
    return content.decode(), at


def _union(kinds: list[Any], names: dict[str, Decoder]) -> Decoder:
    branches = [_decoder(kind, names) for kind in kinds]

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        branch, at = read_varint(data, at, INT64_BYTES_MAX)
        if not 0 <= branch < len(branches):
            raise AvroDataError(f"branch {branch} of a union of {len(branches)}")
        return branches[branch](data, at)

    return decode


def _record(schema: dict[str, Any], names: dict[str, Decoder]) -> Decoder:
    fields = [(name, _decoder(kind, names)) for name, kind in _fields(schema)]

    def decode(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        values = {}
        for name, decode_field in fields:
            values[name], at = decode_field(data, at)
        return values, at

    names[schema.get("name", "")] = decode
    return decode


def _blocks(item: Decoder, *, as_map: bool) -> Decoder:
    """Arrays and maps come in blocks of counted items; a negative count is followed by the block's size."""

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        items: list[Any] = []
        while True:
            count, at = _long(data, at)
            if count == 0:
                return (dict(items) if as_map else items), at
            if count < 0:
                _, at = _long(data, at)
            for _ in range(abs(count)):
                key = None
                if as_map:
                    key, at = _string(data, at)
                value, at = item(data, at)
                items.append((key, value) if as_map else value)

    return decode


def _enum(symbols: list[str]) -> Decoder:
    def decode(data: bytes, at: int) -> tuple[str, int]:
        place, at = _long(data, at)
        if not 0 <= place < len(symbols):
            raise AvroDataError(f"symbol {place} of an enum of {len(symbols)}")
        return symbols[place], at

    return decode


def _fixed(size: int) -> Decoder:
    def decode(data: bytes, at: int) -> tuple[bytes, int]:
        if at + size > len(data):
            raise AvroDataError(f"{size} bytes are needed, {len(data) - at} are left")
        return data[at : at + size], at + size

    return decode


def _logical(decode: Decoder, logical: str) -> Decoder:
    """Timestamps become microseconds, as Arrow and Spark count them."""
    if logical != "timestamp-millis":
        return decode

    def in_microseconds(data: bytes, at: int) -> tuple[Any, int]:
        value, at = decode(data, at)
        return value * 1000, at

    return in_microseconds
