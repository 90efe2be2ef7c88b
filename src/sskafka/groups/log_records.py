"""Records of groups as they stand in __consumer_offsets, byte for byte as Apache Kafka writes them.

    key     int16 type of the record, then the key
    value   int16 version of the value, then the value; none at all where the key is forgotten

Written are the newest versions without tagged fields, so that older brokers read them too: 3 of both values, but 1 of
an offset with a time of expiry, which later versions have no place for.

Offsets are committed all the time, so their newest form is packed by hand; tests compare it with the codec.
"""

from dataclasses import dataclass, field
from struct import Struct
from typing import Any

from sskafka.groups.offsets import NO_TIMESTAMP, CommittedOffset
from sskafka.model.coordination import Decision, StateRecord
from sskafka.model.ids import TopicPartition
from sskafka.wire.codec import decode, encode
from sskafka.wire.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitValue,
)

OFFSET_VALUE_VERSION = 3
OFFSET_VALUE_VERSION_WITH_EXPIRY = 1
GROUP_VALUE_VERSION = 3

LEGACY_OFFSET, OFFSET, GROUP = 0, 1, 2

_INT16, _INT32, _INT64 = Struct(">h"), Struct(">i"), Struct(">q")
_KEY_START = Struct(">hh")  # type, length of the group's name
_OFFSET_START = Struct(">hqih")  # version, offset, leader epoch, length of the note
_NEWEST = _INT16.pack(OFFSET_VALUE_VERSION)
_KEY_VERSION = 0


@dataclass(slots=True)
class GroupDecision(Decision[StateRecord, Any]):
    """A decision about groups, which grows while it is made."""

    records: list[StateRecord] = field(default_factory=list)
    effects: list[object] = field(default_factory=list)


def encode_key(key: Any) -> bytes:
    return _INT16.pack(type(key).SCHEMA.key) + encode(key, _KEY_VERSION)


def encode_value(value: Any, version: int) -> bytes:
    return _INT16.pack(version) + encode(value, version)


def record_type(key: bytes) -> int:
    return int(_INT16.unpack_from(key)[0])


def decode_value(cls: type[Any], value: bytes) -> Any:
    return decode(cls, int(_INT16.unpack_from(value)[0]), value, _INT16.size)


def decode_key(cls: type[Any], key: bytes) -> Any:
    return decode(cls, _KEY_VERSION, key, _INT16.size)


# -- offsets


def offset_record(group_id: str, partition: TopicPartition, offset: CommittedOffset) -> StateRecord:
    if offset.expire_timestamp_ms != NO_TIMESTAMP:
        return StateRecord(_offset_key(group_id, partition), _value_with_expiry(offset))
    metadata = offset.metadata.encode()
    value = _OFFSET_START.pack(OFFSET_VALUE_VERSION, offset.offset, offset.leader_epoch, len(metadata))
    return StateRecord(_offset_key(group_id, partition), value + metadata + _INT64.pack(offset.commit_timestamp_ms))


def offset_tombstone(group_id: str, partition: TopicPartition) -> StateRecord:
    return StateRecord(_offset_key(group_id, partition), None)


def read_offset_key(key: bytes) -> tuple[str, TopicPartition]:
    """The oldest type of key has the same fields."""
    group_length = _INT16.unpack_from(key, 2)[0]
    topic_at = 4 + group_length + 2
    topic_end = topic_at + _INT16.unpack_from(key, topic_at - 2)[0]
    partition = TopicPartition(key[topic_at:topic_end].decode(), _INT32.unpack_from(key, topic_end)[0])
    return key[4 : 4 + group_length].decode(), partition


def read_offset_value(value: bytes) -> CommittedOffset:
    if value[:2] == _NEWEST:
        _, offset, leader_epoch, length = _OFFSET_START.unpack_from(value)
        end = _OFFSET_START.size + length
        metadata = value[_OFFSET_START.size : end].decode()
        return CommittedOffset(offset, leader_epoch, metadata, _INT64.unpack_from(value, end)[0])
    decoded = decode_value(OffsetCommitValue, value)
    return CommittedOffset(
        decoded.offset,
        decoded.leader_epoch,
        decoded.metadata,
        decoded.commit_timestamp,
        decoded.expire_timestamp,
    )


def _offset_key(group_id: str, partition: TopicPartition) -> bytes:
    group, topic = group_id.encode(), partition.topic.encode()
    start = _KEY_START.pack(OFFSET, len(group))
    return b"".join((start, group, _INT16.pack(len(topic)), topic, _INT32.pack(partition.partition)))


def _value_with_expiry(offset: CommittedOffset) -> bytes:
    value = OffsetCommitValue(
        offset=offset.offset,
        metadata=offset.metadata,
        commit_timestamp=offset.commit_timestamp_ms,
        expire_timestamp=offset.expire_timestamp_ms,
    )
    return encode_value(value, OFFSET_VALUE_VERSION_WITH_EXPIRY)


# -- classic groups


def group_record(group_id: str, value: GroupMetadataValue) -> StateRecord:
    return StateRecord(encode_key(GroupMetadataKey(group_id)), encode_value(value, GROUP_VALUE_VERSION))


def group_tombstone(group_id: str) -> StateRecord:
    return StateRecord(encode_key(GroupMetadataKey(group_id)), None)


def read_group_key(key: bytes) -> str:
    return str(decode_key(GroupMetadataKey, key).group)


def read_group_value(value: bytes) -> GroupMetadataValue:
    decoded: GroupMetadataValue = decode_value(GroupMetadataValue, value)
    return decoded
