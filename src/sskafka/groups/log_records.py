"""Records of groups as they stand in __consumer_offsets, byte for byte as Apache Kafka writes them.

    key     int16 type of the record, then the key
    value   int16 version of the value, then the value; none at all where the key is forgotten

Written are the newest versions without tagged fields, so that older brokers read them too: 3 of both values, but 1 of
an offset with a time of expiry, which later versions have no place for.
"""

from struct import Struct
from typing import Any

from sskafka.groups.offsets import NO_TIMESTAMP, CommittedOffset
from sskafka.model.coordination import StateRecord
from sskafka.model.ids import TopicPartition
from sskafka.wire.codec import decode, encode
from sskafka.wire.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
)

OFFSET_VALUE_VERSION = 3
OFFSET_VALUE_VERSION_WITH_EXPIRY = 1
GROUP_VALUE_VERSION = 3

LEGACY_OFFSET, OFFSET, GROUP = 0, 1, 2

_INT16 = Struct(">h")
_KEY_VERSION = 0


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
    expires = offset.expire_timestamp_ms != NO_TIMESTAMP
    version = OFFSET_VALUE_VERSION_WITH_EXPIRY if expires else OFFSET_VALUE_VERSION
    value = OffsetCommitValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=offset.commit_timestamp_ms,
        expire_timestamp=offset.expire_timestamp_ms,
    )
    return StateRecord(_offset_key(group_id, partition), encode_value(value, version))


def offset_tombstone(group_id: str, partition: TopicPartition) -> StateRecord:
    return StateRecord(_offset_key(group_id, partition), None)


def _offset_key(group_id: str, partition: TopicPartition) -> bytes:
    return encode_key(OffsetCommitKey(group_id, partition.topic, partition.partition))


def read_offset_key(key: bytes) -> tuple[str, TopicPartition]:
    cls = LegacyOffsetCommitKey if record_type(key) == LEGACY_OFFSET else OffsetCommitKey
    decoded = decode_key(cls, key)
    return decoded.group, TopicPartition(decoded.topic, decoded.partition)


def read_offset_value(value: bytes) -> CommittedOffset:
    decoded = decode_value(OffsetCommitValue, value)
    return CommittedOffset(
        decoded.offset,
        decoded.leader_epoch,
        decoded.metadata,
        decoded.commit_timestamp,
        decoded.expire_timestamp,
    )


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
