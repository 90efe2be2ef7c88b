"""The notation for Kafka's messages: one dataclass per message, for all of its versions.

    @message
    class FetchTopic:                                                # a nested struct has no SCHEMA
        topic: Annotated[String, until(12), ignorable] = ""          # on the wire in versions up to 12
        topic_id: Annotated[Uuid, since(13), ignorable] = ZERO_UUID  # on the wire in versions 13 and later
        partitions: list[FetchPartition] = field(default_factory=list)

    @message
    class FetchRequest:
        SCHEMA: ClassVar = request(1)                                # an API key; apis.py has its versions
        cluster_id: Annotated[String | None, tagged(0, since=12), ignorable] = None
        max_wait_ms: Int32 = 0
        topics: list[FetchTopic] = field(default_factory=list)

For type checkers `Int32` is an int and `String` a str; the rest of an annotation describes the encoding of the field:

- `since`, `until`, `between`: the versions that have the field. In other versions decoding sets the default, and
  encoding rejects any other value, unless the field is `ignorable`: then the value is dropped.
- `| None`: the field is nullable; `nullable(...)` limits that to some versions.
- `tagged`: the field is in the tagged section of its struct, and only if it differs from its default.

Every field has a default, and the order of fields is the wire order. Structs are defined before they are used.
Annotations are evaluated, so message modules must not use `from __future__ import annotations`.
"""

from dataclasses import field
from enum import Enum
from typing import Annotated, ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar, dataclass_transform

from sskafka.model.buffers import Buffer
from sskafka.model.values import structure, value
from sskafka.wire.apis import API_BY_KEY

VERSION_MAX = 0x7FFF


class Primitive(NamedTuple):
    """A primitive wire type. Types of fixed size have a `struct` format; the others are encoded with a length."""

    name: str
    format: str = ""
    size_bytes: int = 0

    @property
    def is_fixed(self) -> bool:
        return self.size_bytes > 0


UUID = Primitive("uuid", "16s", 16)
STRING = Primitive("string")
BYTES = Primitive("bytes")
RECORDS = Primitive("records")

Int8: TypeAlias = Annotated[int, Primitive("int8", "b", 1)]
Int16: TypeAlias = Annotated[int, Primitive("int16", "h", 2)]
UInt16: TypeAlias = Annotated[int, Primitive("uint16", "H", 2)]
Int32: TypeAlias = Annotated[int, Primitive("int32", "i", 4)]
UInt32: TypeAlias = Annotated[int, Primitive("uint32", "I", 4)]
Int64: TypeAlias = Annotated[int, Primitive("int64", "q", 8)]
Float64: TypeAlias = Annotated[float, Primitive("float64", "d", 8)]
Bool: TypeAlias = Annotated[bool, Primitive("bool", "?", 1)]
Uuid: TypeAlias = Annotated[bytes, UUID]
String: TypeAlias = Annotated[str, STRING]
Bytes: TypeAlias = Annotated[bytes, BYTES]
Records: TypeAlias = Annotated[Buffer, RECORDS]
"""Decoded without a copy: a slice of the message's buffer."""


class Versions(NamedTuple):
    """An inclusive range of versions."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


ALL_VERSIONS = Versions(0, VERSION_MAX)


class Nullable(NamedTuple):
    versions: Versions


class Tagged(NamedTuple):
    tag: int
    since: int


class Ignorable(Enum):
    IGNORABLE = True


ignorable = Ignorable.IGNORABLE


def since(version: int) -> Versions:
    return Versions(version, VERSION_MAX)


def until(version: int) -> Versions:
    return Versions(0, version)


def between(first: int, last: int) -> Versions:
    return Versions(first, last)


def nullable(*, since: int = 0, until: int = VERSION_MAX) -> Nullable:
    return Nullable(Versions(since, until))


def tagged(tag: int, *, since: int = 0) -> Tagged:
    return Tagged(tag, since)


class Kind(Enum):
    REQUEST = "request"
    RESPONSE = "response"
    DATA = "data"


@value
class MessageSchema:
    """Properties of a whole message. `key` is None for data without a type key."""

    kind: Kind
    key: int | None
    versions: Versions
    flexible_from: int
    elements_max: int | None = None
    """Number of elements of all arrays together; None: only the bound of each array applies."""

    def is_flexible(self, version: int) -> bool:
        return version >= self.flexible_from


T = TypeVar("T")


@dataclass_transform(field_specifiers=(field,))
def message(cls: type[T]) -> type[T]:
    return structure(cls)


class Message(Protocol):
    """A dataclass in this notation that is encoded on its own."""

    SCHEMA: ClassVar[MessageSchema]


def request(key: int) -> MessageSchema:
    """Return the schema of the request of an API, with the versions that the table of APIs has for it."""
    return _of_api(Kind.REQUEST, key)


def response(key: int) -> MessageSchema:
    return _of_api(Kind.RESPONSE, key)


def data(*, versions: tuple[int, int], flexible_from: int, key: int | None = None) -> MessageSchema:
    """Schema of data that is stored rather than sent: records of internal topics, control records, subscriptions."""
    return MessageSchema(Kind.DATA, key, Versions(*versions), flexible_from)


def _of_api(kind: Kind, key: int) -> MessageSchema:
    api = API_BY_KEY[key]
    elements_max = api.elements_max if kind is Kind.REQUEST else None
    return MessageSchema(kind, key, Versions(api.min_version, api.max_version), api.flexible_from, elements_max)
