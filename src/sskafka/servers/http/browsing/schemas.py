"""Schemas that a request or a file has: Avro as JSON, or a descriptor set of Protobuf."""

import json
from base64 import b64decode
from typing import Any

from sskafka.model.extras import install_extra
from sskafka.records.avro import AvroSchemaError, avro_reader, check_is_bounded
from sskafka.records.protobuf import ProtobufSchema, ProtobufSchemaError
from sskafka.servers.http.browsing.payloads import Encoding, Schema, skipping_registry_prefix

AVRO_BYTES_MAX = 256 * 1024
"""A byte may be a record in an array. 256 KiB take 0.3 s to decode, in which the HTTP process does nothing else."""


class SchemaError(ValueError):
    """The schema cannot be used; says why."""


def parse_schema(text: str) -> Schema:
    """Return the schema of a request: that of Avro as JSON, or `{"protobuf": base64, "message": name}`.

    Raises SchemaError."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"not JSON: {error}") from None
    if not isinstance(found, dict) or "protobuf" not in found:
        return avro_schema(found)
    try:
        descriptor_set = b64decode(str(found["protobuf"]), validate=True)
    except ValueError as error:
        raise SchemaError(f"protobuf: not base64: {error}") from None
    return protobuf_schema(descriptor_set, str(found.get("message") or ""))


def avro_schema(schema: Any) -> Schema:
    try:
        check_is_bounded(schema)
        read = skipping_registry_prefix(avro_reader(schema, AVRO_BYTES_MAX))
    except ModuleNotFoundError:
        raise SchemaError(f"this broker cannot read Avro; beside it, {install_extra('avro')}") from None
    except (AvroSchemaError, RecursionError) as error:
        raise SchemaError(str(error)) from None
    return Schema(Encoding.AVRO, read, str(schema.get("name", "")) if isinstance(schema, dict) else "")


def protobuf_schema(descriptor_set: bytes, message: str = "") -> Schema:
    try:
        schema = ProtobufSchema(descriptor_set, message)
    except ModuleNotFoundError:
        raise SchemaError(f"this broker cannot read Protobuf; beside it, {install_extra('protobuf')}") from None
    except ProtobufSchemaError as error:
        raise SchemaError(str(error)) from None
    return Schema(Encoding.PROTOBUF, schema.read, schema.name)
