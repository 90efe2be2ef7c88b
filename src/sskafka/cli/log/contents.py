"""Record contents as text: plain text and numbers, or the records of Kafka's internal topics as JSON.

Lines are those of kafka-dump-log: `key: {"type":"1","data":{...}} payload: {"version":"4","data":{...}}`. For a record
that cannot be decoded the line says so, and the next record is read.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from struct import Struct, error, unpack_from
from typing import Any, NamedTuple

from sskafka.metadata.record_codec import UnknownRecordError
from sskafka.metadata.record_json import record_json
from sskafka.records.record import Record
from sskafka.wire.codec import MalformedMessageError, UnsupportedVersionError, decode
from sskafka.wire.message_json import message_json
from sskafka.wire.schema import Message

_INT16, _INT32, _INT64 = Struct(">h"), Struct(">i"), Struct(">q")
_DELETED = "<DELETE>"
_CONSUMER_PROTOCOL = "consumer"
_GROUP_METADATA_TYPE = 2


class Topic(Enum):
    """The internal topic whose format is expected."""

    CLUSTER_METADATA = "__cluster_metadata"
    CONSUMER_OFFSETS = "__consumer_offsets"
    TRANSACTION_STATE = "__transaction_state"
    SHARE_GROUP_STATE = "__share_group_state"


_RECORD_MODULES = {
    Topic.CONSUMER_OFFSETS: ("group_records", "share_group_records", "streams_group_records"),
    Topic.TRANSACTION_STATE: ("transaction_records",),
    Topic.SHARE_GROUP_STATE: ("share_state_records",),
}


class Words(NamedTuple):
    key: str | None
    value: str | None


Decoder = Callable[[Record], Words]


@dataclass(frozen=True, slots=True)
class PlainDecoder:
    """Decodes keys and values independently, each in its own form."""

    key: Callable[[bytes], str]
    value: Callable[[bytes], str]

    def __call__(self, record: Record) -> Words:
        return Words(
            None if record.key is None else self.key(record.key),
            None if record.value is None else self.value(record.value),
        )


def text_of(data: bytes) -> str:
    return data.decode(errors="replace")


def _number(layout: Struct) -> Callable[[bytes], str]:
    def number_of(data: bytes) -> str:
        return str(layout.unpack(data)[0]) if len(data) == layout.size else f"0x{data.hex()}"

    return number_of


# By the names of Kafka's decoder classes, without their packages.
FORMS: Mapping[str, Callable[[bytes], str]] = {
    "StringDecoder": text_of,
    "IntegerDecoder": _number(_INT32),
    "LongDecoder": _number(_INT64),
    "DefaultDecoder": bytes.hex,
}


def form_of_class(name: str) -> Callable[[bytes], str] | None:
    """`kafka.serializer.StringDecoder`, `org.apache.kafka.tools.api.StringDecoder` or plain `StringDecoder`."""
    return FORMS.get(name.rpartition(".")[2])


def decoder_for(topic: Topic) -> Decoder:
    if topic is Topic.CLUSTER_METADATA:
        return _metadata_words
    return lambda record: _coordinator_words(record, topic)


def compact_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _metadata_words(record: Record) -> Words:
    try:
        return Words(None, compact_json(record_json(record.value or b"")))
    except (UnknownRecordError, MalformedMessageError) as problem:
        return Words(None, f"Error at {record.offset}, skipping. {problem}")


class _RecordType(NamedTuple):
    key: type[Message]
    value: type[Message]


@cache
def _record_types(topic: Topic) -> dict[int, _RecordType]:
    """Return record types by the number at the start of the key. Their classes are called XKey and XValue."""
    modules = [import_module(f"sskafka.wire.messages.{name}") for name in _RECORD_MODULES[topic]]
    classes: dict[str, type[Message]] = {
        name: cls for module in modules for name, cls in vars(module).items() if hasattr(cls, "SCHEMA")
    }
    return {
        int(cls.SCHEMA.key): _RecordType(cls, classes[name.removesuffix("Key") + "Value"])
        for name, cls in classes.items()
        if name.endswith("Key") and cls.SCHEMA.key is not None
    }


def _coordinator_words(record: Record, topic: Topic) -> Words:
    """Decode a coordinator record. The key starts with its int16 type, the value with its int16 version."""
    try:
        (number,) = unpack_from(">h", record.key or b"")
        kind = _record_types(topic).get(number)
        if kind is None:
            return Words(f"Unknown record type {number} at offset {record.offset}, skipping.", None)
        key = decode(kind.key, 0, record.key or b"", _INT16.size)
        words = compact_json({"type": str(number), "data": message_json(key, 0)})
        return Words(words, _DELETED if record.value is None else _value_words(kind.value, number, record.value))
    except (MalformedMessageError, UnsupportedVersionError, error) as problem:
        return Words(f"Error at offset {record.offset}, skipping. {problem}", None)


def _value_words(cls: type[Message], number: int, value: bytes) -> str:
    (version,) = unpack_from(">h", value)
    message: Any = decode(cls, version, value, _INT16.size)
    fields = message_json(message, version)
    if number == _GROUP_METADATA_TYPE and message.protocol_type == _CONSUMER_PROTOCOL:
        for member, shown in zip(message.members, fields["members"], strict=True):
            _unfold(shown, "subscription", member.subscription, "ConsumerProtocolSubscription")
            _unfold(shown, "assignment", member.assignment, "ConsumerProtocolAssignment")
    return compact_json({"version": str(version), "data": fields})


def _unfold(shown: dict[str, Any], name: str, data: bytes, class_name: str) -> None:
    """Decode what consumers store in their group's metadata. Other bytes are left unchanged."""
    cls: type[Message] = getattr(import_module("sskafka.wire.messages.consumer_protocol"), class_name)
    try:
        (version,) = unpack_from(">h", data)
        message = decode(cls, version, data, _INT16.size, allow_trailing=True)
    except (MalformedMessageError, UnsupportedVersionError, error):
        return
    shown[name] = message_json(message, version)


def words_line(words: Words) -> Iterable[str]:
    """Yield the pieces of a record's line."""
    if words.key is not None:
        yield f"key: {words.key}"
    if words.value is not None:
        yield f"payload: {words.value}"
