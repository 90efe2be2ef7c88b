"""Kafka's protocol grammar, read field by field.

The tester must be able to name the wrong field of a response and its position, also if the response ends within the
field. It therefore has its own reader: a grammar is built from the types below, and reading returns every field with
its path, its type as in protocol descriptions, and its position in the response.

    topics[0].partitions[1].error_code   INT16   bytes 57..58   0

The reader shares no code with the codec of SSKafka's brokers, which would hide bugs that both have in common.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple, Protocol


class Field(NamedTuple):
    path: str
    kind: str
    value: object
    start: int
    end: int

    @property
    def location(self) -> str:
        last = self.end - 1
        return f"{self.kind}, byte {self.start}" if last <= self.start else f"{self.kind}, bytes {self.start}..{last}"


class UnreadableAnswerError(Exception):
    """The bytes do not follow the grammar from `position` on; `fields` are the fields before it."""

    def __init__(self, path: str, kind: str, position: int, reason: str, fields: Sequence[Field] = ()) -> None:
        super().__init__(f"{path} ({kind}, byte {position}): {reason}")
        self.position = position
        self.fields = tuple(fields)


@dataclass(slots=True)
class Cursor:
    """The current position, and the fields read so far."""

    data: bytes
    position: int = 0
    fields: list[Field] = field(default_factory=list)

    def take(self, size: int, path: str, kind: str) -> bytes:
        left = len(self.data) - self.position
        if size > left:
            raise self.unreadable(path, kind, f"needs {size} bytes, but only {left} are left")
        start, self.position = self.position, self.position + size
        return self.data[start : self.position]

    def unsigned_varint(self, path: str, kind: str) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1, path, kind)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise self.unreadable(path, kind, "the varint is too long")

    def note(self, path: str, kind: str, value: object, start: int) -> None:
        self.fields.append(Field(path, kind, value, start, self.position))

    def unreadable(self, path: str, kind: str, reason: str) -> UnreadableAnswerError:
        return UnreadableAnswerError(path, kind, self.position, reason, self.fields)


class Type(Protocol):
    def read(self, cursor: Cursor, path: str) -> None:
        """Read the field at `path` and its inner fields, and add them to the cursor."""
        ...


@dataclass(frozen=True, slots=True)
class Number:
    kind: str
    layout: Struct

    def read(self, cursor: Cursor, path: str) -> None:
        start = cursor.position
        (value,) = self.layout.unpack(cursor.take(self.layout.size, path, self.kind))
        cursor.note(path, self.kind, value, start)


INT16 = Number("INT16", Struct(">h"))
INT32 = Number("INT32", Struct(">i"))
INT64 = Number("INT64", Struct(">q"))
BOOLEAN = Number("BOOLEAN", Struct(">?"))
UUID = Number("UUID", Struct(">16s"))


@dataclass(frozen=True, slots=True)
class CompactBytes:
    """The length plus one as a varint (0: null), then the bytes: strings and records of flexible versions."""

    kind: str
    is_text: bool
    nullable: bool = False

    def read(self, cursor: Cursor, path: str) -> None:
        start = cursor.position
        length = cursor.unsigned_varint(path, self.kind) - 1
        if length < 0:
            if not self.nullable:
                raise cursor.unreadable(path, self.kind, "null is not allowed here")
            cursor.note(path, self.kind, None, start)
            return
        data = cursor.take(length, path, self.kind)
        try:
            value: object = data.decode() if self.is_text else data
        except UnicodeDecodeError:
            raise cursor.unreadable(path, self.kind, f"{data!r} is not UTF-8") from None
        cursor.note(path, self.kind, value, start)


COMPACT_STRING = CompactBytes("COMPACT_STRING", is_text=True)
COMPACT_NULLABLE_STRING = CompactBytes("COMPACT_NULLABLE_STRING", is_text=True, nullable=True)
COMPACT_RECORDS = CompactBytes("COMPACT_RECORDS", is_text=False, nullable=True)


class TagBuffer:
    """Tagged fields. The broker decides which to send, but they must be well formed."""

    kind = "TAG_BUFFER"

    def read(self, cursor: Cursor, path: str) -> None:
        start = cursor.position
        tags: dict[int, bytes] = {}
        for _ in range(cursor.unsigned_varint(path, self.kind)):
            tag = cursor.unsigned_varint(path, self.kind)
            tags[tag] = cursor.take(cursor.unsigned_varint(path, self.kind), path, self.kind)
        cursor.note(path, self.kind, tags, start)


TAG_BUFFER = TagBuffer()


class Fields:
    """A struct: named fields in order."""

    def __init__(self, **types: Type) -> None:
        self._types: Mapping[str, Type] = types

    def read(self, cursor: Cursor, path: str) -> None:
        for name, kind in self._types.items():
            kind.read(cursor, f"{path}.{name}" if path else name)


@dataclass(frozen=True, slots=True)
class Nullable:
    """A nullable struct, preceded by a byte that is negative if the struct is null."""

    fields: Fields

    def read(self, cursor: Cursor, path: str) -> None:
        start = cursor.position
        if cursor.take(1, path, "nullable struct")[0] >= 0x80:
            cursor.note(path, "nullable struct", None, start)
        else:
            self.fields.read(cursor, path)


@dataclass(frozen=True, slots=True)
class Array:
    """An array. Its length is a field, too: `topics.length`, -1 for null."""

    element: Type
    is_compact: bool = True

    def read(self, cursor: Cursor, path: str) -> None:
        start, kind = cursor.position, "COMPACT_ARRAY" if self.is_compact else "ARRAY"
        if self.is_compact:
            count = cursor.unsigned_varint(path, kind) - 1
        else:
            (count,) = INT32.layout.unpack(cursor.take(4, path, kind))
        left = len(cursor.data) - cursor.position
        if count > left:  # every element has at least one byte
            raise cursor.unreadable(path, kind, f"has {count} elements, but only {left} bytes are left")
        cursor.note(f"{path}.length", kind, count, start)
        for number in range(count):
            self.element.read(cursor, f"{path}[{number}]")


class Answer:
    """A response with its fields by path."""

    def __init__(self, data: bytes, fields: Sequence[Field]) -> None:
        self.data = data
        self.fields = tuple(fields)
        self._by_path = {one.path: one for one in fields}

    def find(self, path: str) -> Field | None:
        return self._by_path.get(path)

    def __getitem__(self, path: str) -> object:
        return self._by_path[path].value


def read_answer(grammar: Type, data: bytes, *, prefix: bool = False) -> Answer:
    """Read all of `data` by the grammar; with `prefix`, further bytes may follow."""
    cursor = Cursor(data)
    grammar.read(cursor, "")
    if cursor.position < len(data) and not prefix:
        surplus = len(data) - cursor.position
        raise cursor.unreadable("the end", "size", f"{surplus} bytes follow the response")
    return Answer(data, cursor.fields)
