"""Avro schemas: conversion of their JSON to Spark's types, and a decoder of what Spark reads.

Spark's own Avro support is a jar that pip does not install, so fastavro decodes the records.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from sskafka.records.avro import AvroSchemaError, avro_reader

AvroType: TypeAlias = str | list[Any] | dict[str, Any]

_PRIMITIVES = {
    "null": "string", "boolean": "boolean", "int": "int", "long": "bigint", "float": "float", "double": "double",
    "bytes": "binary", "string": "string",
}  # fmt: skip
_LOGICAL = {
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
    "date": "date",
}


def parse_avro_schema(text: str) -> dict[str, Any]:
    """Parse the schema of a record, and check all of its types."""
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
    """Return the fields of the record in Spark's DDL."""
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
    return _logical_type(kind) or _complex_spark_type(kind, names)


def _logical_type(kind: dict[str, Any]) -> str | None:
    logical = kind.get("logicalType")
    if logical == "decimal" and isinstance(kind.get("precision"), int):
        return f"decimal({kind['precision']},{kind.get('scale', 0)})"
    return _LOGICAL.get(str(logical))


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
    """Return a function from the bytes of a record to its fields; the function raises AvroDataError."""
    return avro_reader(_as_spark_reads(schema))


def _as_spark_reads(kind: Any) -> Any:
    """Drop the logical types that Spark does not have: their fields have the type in which they are stored."""
    if isinstance(kind, list):
        return [_as_spark_reads(branch) for branch in kind]
    if not isinstance(kind, dict):
        return kind
    known = kind if _logical_type(kind) else {key: value for key, value in kind.items() if key != "logicalType"}
    inner = {key: _as_spark_reads(known[key]) for key in ("type", "items", "values") if key in known}
    if isinstance(known.get("fields"), list):
        inner["fields"] = [{**field, "type": _as_spark_reads(field["type"])} for field in known["fields"]]
    return {**known, **inner}
