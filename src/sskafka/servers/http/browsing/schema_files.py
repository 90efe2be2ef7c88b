"""Schemas of topics in a directory of the broker, `console.schema.dir`. They are read when used and after changes.

orders-value.avsc              an Avro schema
orders-key.desc                a descriptor set of Protobuf; records are of the first message of its last file
orders-value.shop.Order.desc   the same; records are of the message shop.Order
"""

import json
import os
import re
from pathlib import Path
from typing import Final, Literal, TypeAlias

from sskafka.model.ids import topic_name_problem
from sskafka.servers.http.browsing.payloads import Encoding, Schema
from sskafka.servers.http.browsing.schemas import SchemaError, avro_schema, protobuf_schema

FILE_BYTES_MAX: Final = 4 * 1024 * 1024
KEPT_MAX: Final = 1_000
AVRO_SUFFIX, PROTOBUF_SUFFIX = ".avsc", ".desc"
_MESSAGE = re.compile(r"(?:\.(?P<message>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*))?\.desc")

Part: TypeAlias = Literal["key", "value"]


class SchemaFiles:
    """The schemas in a directory; none if there is no directory."""

    def __init__(self, directory: str | None) -> None:
        self._directory = directory
        self._kept: dict[tuple[str, int, int], Schema] = {}
        """Schemas that were read, by path, time of change and size of the file."""

    def find(self, topic: str, part: Part) -> Schema | None:
        """Return the schema of the topic's keys or values; one that cannot be used says why."""
        if not self._directory or topic_name_problem(topic) is not None:
            return None
        found = self._file_of(f"{topic}-{part}")
        if found is None:
            return None
        name, message = found
        try:
            return self._schema(Path(self._directory, name), message)
        except FileNotFoundError:
            return None
        except (SchemaError, OSError) as error:
            return _unusable(name, error)

    def _file_of(self, stem: str) -> tuple[str, str] | None:
        """Return the name of the file and the message that it names. Avro is chosen before Protobuf."""
        assert self._directory
        try:
            names = sorted(name for name in os.listdir(self._directory) if name.startswith(stem))
        except OSError:
            return None
        if stem + AVRO_SUFFIX in names:
            return stem + AVRO_SUFFIX, ""
        for name in names:
            match = _MESSAGE.fullmatch(name, len(stem))
            if match is not None:
                return name, match["message"] or ""
        return None

    def _schema(self, path: Path, message: str) -> Schema:
        status = path.stat()
        key = (str(path), status.st_mtime_ns, status.st_size)
        if key not in self._kept:
            if status.st_size > FILE_BYTES_MAX:
                raise SchemaError(f"it has more than {FILE_BYTES_MAX >> 20} MiB")
            if len(self._kept) >= KEPT_MAX:
                self._kept.clear()
            self._kept[key] = _parsed(path.read_bytes(), path.suffix, message)
        return self._kept[key]


def _parsed(data: bytes, suffix: str, message: str) -> Schema:
    if suffix == PROTOBUF_SUFFIX:
        return protobuf_schema(data, message)
    try:
        schema = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"not JSON: {error}") from None
    return avro_schema(schema)


def _unusable(name: str, error: Exception) -> Schema:
    """Return a schema that reads nothing, so that the records are shown as they are stored, with the reason."""
    problem = f"the broker's schema {name} cannot be used: {error}"

    def read(data: bytes) -> None:
        raise SchemaError(problem)

    encoding = Encoding.AVRO if name.endswith(AVRO_SUFFIX) else Encoding.PROTOBUF
    return Schema(encoding, read, problem=problem)
