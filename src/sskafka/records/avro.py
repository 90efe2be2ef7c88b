"""Read records in Avro's binary encoding, by a schema that the reader knows.

fastavro reads them. It is not among the dependencies of a broker: `pip install 'sskafka[avro]'`.
"""

import io
import sys
from collections.abc import Callable, Mapping
from typing import Any


class AvroSchemaError(ValueError):
    """The schema cannot be used."""


class AvroDataError(ValueError):
    """The bytes do not follow the schema."""


def avro_reader(schema: Any, data_bytes_max: int = sys.maxsize) -> Callable[[bytes], Any]:
    """Return a function from bytes to the value that they encode.

    The function raises AvroDataError, also for more than `data_bytes_max` bytes."""
    import fastavro  # noqa: PLC0415  (takes 60 ms, and most processes read no Avro)
    from fastavro.schema import SchemaParseException, UnknownType  # noqa: PLC0415

    try:
        parsed = fastavro.parse_schema(schema)
    except (SchemaParseException, UnknownType) as error:
        raise AvroSchemaError(f"the Avro schema cannot be used: {error}") from None

    def read(data: bytes) -> Any:
        if len(data) > data_bytes_max:
            raise AvroDataError(f"Avro data of more than {data_bytes_max >> 10} KiB is not decoded here")
        source = io.BytesIO(data)
        try:
            value = fastavro.schemaless_reader(source, parsed, None)
        except (EOFError, IndexError, ValueError, OverflowError) as error:  # what fastavro raises for other bytes
            cause = str(error) or "they end too early"
            raise AvroDataError(f"the bytes do not follow the schema: {cause}") from None
        left = len(data) - source.tell()
        if left:
            raise AvroDataError(f"{left} bytes follow the record: it was written with another schema")
        return value

    return read


def check_is_bounded(schema: Any) -> None:
    """Raise AvroSchemaError unless reading takes time and memory in proportion to the bytes.

    Items of arrays that take no byte are refused: five bytes could announce a billion of them. So are types that
    contain themselves: a megabyte could nest deeper than the stack."""
    _least_bytes(schema, {}, frozenset())


def _least_bytes(kind: Any, named: dict[str, int], inside: frozenset[str]) -> int:
    """Return 0 if a value of this type may take no byte, otherwise 1 or more.

    `named` has the types before this one and `inside` those around it, without their namespaces."""
    match kind:
        case list():
            for branch in kind:
                _least_bytes(branch, named, inside)
            return 1
        case str():
            name = kind.rpartition(".")[2]
            if name in inside:
                raise AvroSchemaError(f"the type {kind!r} contains itself; only types of limited depth are read here")
            return named.get(name, int(kind != "null"))
        case dict():
            return _least_bytes_of_complex(kind, named, inside)
        case _:
            raise AvroSchemaError(f"{kind!r} is not an Avro type")


def _least_bytes_of_complex(kind: Mapping[str, Any], named: dict[str, int], inside: frozenset[str]) -> int:
    name = str(kind.get("name", "")).rpartition(".")[2]
    match kind.get("type"):
        case "record" | "error":
            fields = kind.get("fields")
            if not isinstance(fields, list) or not all(isinstance(one, dict) for one in fields):
                raise AvroSchemaError(f"the record {name!r} has no list of fields")
            least = sum(_least_bytes(one.get("type"), named, inside | {name}) for one in fields)
        case "array":
            if _least_bytes(kind.get("items"), named, inside) == 0:
                raise AvroSchemaError("an array whose items take no byte is not read here")
            return 1
        case "map":
            _least_bytes(kind.get("values"), named, inside)
            return 1
        case "enum":
            least = 1
        case "fixed":
            size = kind.get("size")
            least = 1 if isinstance(size, int) and size > 0 else 0
        case other:
            return _least_bytes(other, named, inside)
    named[name] = min(least, named.get(name, least))
    return least
