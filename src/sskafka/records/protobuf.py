"""Read records in Protobuf's binary encoding, by a descriptor set.

    protoc --include_imports --descriptor_set_out=orders.desc orders.proto

The package protobuf reads them. It is not among the dependencies of a broker: `pip install 'sskafka[protobuf]'`.

Serializers of schema registries write a prefix before the message, which is read, too. A message never begins with a
zero byte, because there is no field 0.

    0 | id of the schema (4 bytes) | path of the message in its file | message

The path has a count and as many indexes, as zigzag varints; a count of 0 means the first message.
"""

import math
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Final

DATA_BYTES_MAX: Final = 1024 * 1024
VALUES_MAX: Final = 10_000
"""Fields and elements of one record. Two bytes may be an element, so a megabyte could have half a million."""
_REGISTRY_ID_BYTES = 5
_PATH_MAX = 32
_KNOWN_IMPORTS = {
    f"google/protobuf/{name}.proto": f"google.protobuf.{name}_pb2"
    for name in ("any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")
}
_SHOWN_AS_TEXT = frozenset({"google.protobuf.Timestamp", "google.protobuf.Duration", "google.protobuf.FieldMask"})


class ProtobufSchemaError(ValueError):
    """The descriptor set cannot be used."""


class ProtobufDataError(ValueError):
    """The bytes do not follow the schema, or have too many fields to be shown."""


class ProtobufSchema:
    """The messages of a descriptor set. Records are of the message `name`, or of the first one of the last file."""

    def __init__(self, descriptor_set: bytes, name: str = "") -> None:
        """Raise ProtobufSchemaError if the set cannot be used or has no such message."""
        from google.protobuf.message import DecodeError  # noqa: PLC0415  (takes 30 ms, and few processes read it)
        from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415

        self._class_of = GetMessageClass
        try:
            self._pool, self._file = _loaded(descriptor_set)
            self._is_named = bool(name)
            self._default = self._named(name) if name else self._at([0])
        except (DecodeError, TypeError, KeyError, ProtobufDataError) as error:
            raise ProtobufSchemaError(f"the descriptor set cannot be used: {_sentence(error)}") from None

    @property
    def name(self) -> str:
        return str(self._default.full_name)

    def read(self, data: bytes) -> dict[str, Any]:
        """Return the fields of a message by name, and those that the schema does not have as `#number`.

        Raises ProtobufDataError."""
        from google.protobuf.message import DecodeError  # noqa: PLC0415

        if len(data) > DATA_BYTES_MAX:
            raise ProtobufDataError(f"values of more than {DATA_BYTES_MAX >> 20} MiB are not decoded")
        start, descriptor = self._message_of(data)
        try:
            message = self._class_of(descriptor).FromString(data[start:])
            fields = _Reader().fields_of(message)
        except (DecodeError, UnicodeDecodeError) as error:
            raise ProtobufDataError(f"the bytes are not a {descriptor.full_name}: {_sentence(error)}") from None
        if fields and all(name.startswith("#") for name in fields):
            raise ProtobufDataError(f"the bytes have no field of {descriptor.full_name}: it is another message")
        return fields

    def _message_of(self, data: bytes) -> tuple[int, Any]:
        """Return where the message begins, and its descriptor."""
        if not data or data[0] != 0:
            return 0, self._default
        path, start = _path_of(data)
        return start, self._default if self._is_named else self._at(path)

    def _at(self, path: list[int]) -> Any:
        """Return the message at a path of the last file: its number there, then the numbers of nested messages."""
        messages, found = list(self._file.message_types_by_name.values()), None
        for number in path:
            if not 0 <= number < len(messages):
                raise ProtobufDataError(f"{self._file.name} has no message {'.'.join(map(str, path))}")
            found = messages[number]
            messages = list(found.nested_types)
        return found

    def _named(self, name: str) -> Any:
        try:
            return self._pool.FindMessageTypeByName(name)
        except KeyError:
            raise ProtobufDataError(f"it has no message {name!r}") from None


def _loaded(descriptor_set: bytes) -> tuple[Any, Any]:
    """Return a pool with the files of the set, and the last file, which is the one that protoc was called with."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet  # noqa: PLC0415
    from google.protobuf.descriptor_pool import DescriptorPool  # noqa: PLC0415

    files = FileDescriptorSet.FromString(descriptor_set).file
    if not files:
        raise ProtobufDataError("it has no files")
    pool = DescriptorPool()
    added = {file.name for file in files}
    for file in files:
        for name in file.dependency:
            if name not in added and name in _KNOWN_IMPORTS:
                added.add(name)
                pool.AddSerializedFile(import_module(_KNOWN_IMPORTS[name]).DESCRIPTOR.serialized_pb)
            elif name not in added:
                raise ProtobufDataError(f"it lacks {name}; call protoc with --include_imports")
        pool.AddSerializedFile(file.SerializeToString())
    return pool, pool.FindFileByName(files[-1].name)


class _Reader:
    """Reads one message, within the bound of values."""

    def __init__(self) -> None:
        from google.protobuf.unknown_fields import UnknownFieldSet  # noqa: PLC0415

        self._unknown_of: Callable[[Any], Iterable[Any]] = UnknownFieldSet
        self._left = VALUES_MAX

    def fields_of(self, message: Any) -> dict[str, Any]:
        known = {_name_of(field): self._value(field, value) for field, value in message.ListFields()}
        return known | self._unknown(self._unknown_of(message))

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise ProtobufDataError(f"records with more than {VALUES_MAX:,} fields and elements are not decoded")

    def _value(self, field: Any, value: Any) -> Any:
        if isinstance(value, str | bytes | int | float) or hasattr(value, "ListFields"):
            return self._single(field, value)
        if len(value) > self._left:
            self._take(len(value))
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            of_value = field.message_type.fields_by_name["value"]
            return {str(key): self._single(of_value, value[key]) for key in value}
        return [self._single(field, one) for one in value]

    def _single(self, field: Any, value: Any) -> Any:
        self._take(1)
        if field.message_type is not None:
            return self._message(field.message_type.full_name, value)
        if field.enum_type is not None:
            known = field.enum_type.values_by_number.get(value)
            return value if known is None else known.name
        return str(value) if isinstance(value, float) and not math.isfinite(value) else value

    def _message(self, name: str, value: Any) -> Any:
        if name in _SHOWN_AS_TEXT and hasattr(value, "ToJsonString"):
            try:
                return value.ToJsonString()
            except ValueError:
                pass  # out of the range of that type: its fields say what there is
        return self.fields_of(value)

    def _unknown(self, fields: Iterable[Any]) -> dict[str, Any]:
        """Return fields that the schema does not have, by number. Groups are read like messages."""
        found: dict[str, Any] = {}
        for field in fields:
            self._take(1)
            data = field.data
            is_plain = isinstance(data, int | bytes)
            found.setdefault(f"#{field.field_number}", []).append(data if is_plain else self._unknown(data))
        return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _name_of(field: Any) -> str:
    return f"[{field.full_name}]" if field.is_extension else str(field.name)


def _path_of(data: bytes) -> tuple[list[int], int]:
    """Return the path of the message after the prefix of a schema registry, and where the message begins."""
    count, at = _zigzag(data, _REGISTRY_ID_BYTES)
    if not 0 <= count <= _PATH_MAX:
        raise ProtobufDataError("the bytes begin with zero, but not as the serializer of a schema registry writes")
    path = []
    for _ in range(count):
        number, at = _zigzag(data, at)
        path.append(number)
    return path or [0], at


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(data) and shift < 35:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise ProtobufDataError("the bytes end within the prefix of a schema registry")


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
