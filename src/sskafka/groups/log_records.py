"""Records of groups, typed, and their encoding in __consumer_offsets.

    OffsetRecord    the committed offset of a partition; None for a tombstone
    GroupRecord     a key and a value of Kafka's messages for groups, classic ones and consumer groups (KIP-848)

The bytes are those that Apache Kafka writes:

    key     int16 type of the record, then the key
    value   int16 version of the value, then the value; null for a tombstone

Values are written in the newest versions without tagged fields, so that older brokers can read them: version 3 for
offsets and classic groups, but version 1 for an offset with an expiry time, which later versions do not have.

Offsets are committed all the time, so their newest version is packed by hand; tests compare it with the codec.
"""

from struct import Struct
from typing import Any, NamedTuple

from sskafka.groups.classic_group import ClassicGroup, StaticReplacement
from sskafka.groups.offsets import NO_TIMESTAMP, CommittedOffset
from sskafka.model.computation import Computation
from sskafka.model.coordination import CoordinatorResult, StateRecord
from sskafka.model.ids import TopicPartition
from sskafka.wire.codec import decode, decode_in_slices, encode
from sskafka.wire.messages import group_records as wire
from sskafka.wire.messages.group_records import GroupMetadataKey, GroupMetadataValue, OffsetCommitValue

OFFSET_VALUE_VERSION = 3
OFFSET_VALUE_VERSION_WITH_EXPIRY = 1
GROUP_VALUE_VERSION = 3
CONSUMER_VALUE_VERSION = 0

LEGACY_OFFSET, OFFSET, GROUP = 0, 1, 2

_INT16, _INT32, _INT64 = Struct(">h"), Struct(">i"), Struct(">q")
_KEY_START = Struct(">hh")  # type, length of the group's name
_OFFSET_START = Struct(">hqih")  # version, offset, leader epoch, length of the note
_NEWEST = _INT16.pack(OFFSET_VALUE_VERSION)
_KEY_VERSION = 0


class OffsetRecord(NamedTuple):
    group_id: str
    partition: TopicPartition
    offset: CommittedOffset | None = None


class GroupRecord(NamedTuple):
    key: Any
    """One of the key messages in `_MESSAGES`."""
    value: Any = None
    """The value message that belongs to the key; None for a tombstone."""
    successor: ClassicGroup | None = None
    """The classic group that a decision made of a consumer group. It has soft state that no record keeps, so `replay`
    puts it in the place of the consumer group. It is not written: a broker that loads the log makes the group from
    `value`."""
    replacement: StaticReplacement | None = None
    """The static member that is new in `value`, with its soft state. It is not written either."""
    kept: Any = None
    """What a consumer group keeps of `value`: topics, a target or an assignment. The decision that made the record had
    it, or it was read in steps, so `replay` does not read it from `value` again. It is not written either."""


Record = OffsetRecord | GroupRecord

_MESSAGES: dict[int, tuple[type[Any], type[Any]]] = {
    GROUP: (GroupMetadataKey, GroupMetadataValue),
    3: (wire.ConsumerGroupMetadataKey, wire.ConsumerGroupMetadataValue),
    4: (wire.ConsumerGroupPartitionMetadataKey, wire.ConsumerGroupPartitionMetadataValue),
    5: (wire.ConsumerGroupMemberMetadataKey, wire.ConsumerGroupMemberMetadataValue),
    6: (wire.ConsumerGroupTargetAssignmentMetadataKey, wire.ConsumerGroupTargetAssignmentMetadataValue),
    7: (wire.ConsumerGroupTargetAssignmentMemberKey, wire.ConsumerGroupTargetAssignmentMemberValue),
    8: (wire.ConsumerGroupCurrentMemberAssignmentKey, wire.ConsumerGroupCurrentMemberAssignmentValue),
    16: (wire.ConsumerGroupRegularExpressionKey, wire.ConsumerGroupRegularExpressionValue),
}
"""Key and value by type of the record. Type 4, the topics of a group, is ignored: the hash in type 3 replaces it."""


GroupResult = CoordinatorResult[Record, Any]


def encode_record(record: Record) -> StateRecord:
    if isinstance(record, OffsetRecord):
        key = _offset_key(record.group_id, record.partition)
        return StateRecord(key, None if record.offset is None else _offset_value(record.offset))
    value = record.value
    if value is None:
        return StateRecord(encode_key(record.key), None)
    version = GROUP_VALUE_VERSION if isinstance(value, GroupMetadataValue) else CONSUMER_VALUE_VERSION
    return StateRecord(encode_key(record.key), encode_value(value, version))


def decode_record(record: StateRecord) -> Record | None:
    """None for records of kinds that this software does not know."""
    kind = record_type(record.key)
    if kind in {LEGACY_OFFSET, OFFSET}:
        group_id, partition = read_offset_key(record.key)
        return OffsetRecord(group_id, partition, None if record.value is None else read_offset_value(record.value))
    if kind not in _MESSAGES:
        return None
    key_class, value_class = _MESSAGES[kind]
    value = None if record.value is None else decode_value(value_class, record.value)
    return GroupRecord(decode_key(key_class, record.key), value)


def decode_record_in_steps(record: StateRecord) -> Computation[Record | None]:
    """As `decode_record`, for a record whose value is long."""
    kind = record_type(record.key)
    if kind not in _MESSAGES or record.value is None:
        return decode_record(record)
    key_class, value_class = _MESSAGES[kind]
    version = int(_INT16.unpack_from(record.value)[0])
    value = yield from decode_in_slices(value_class, version, record.value, _INT16.size)
    return GroupRecord(decode_key(key_class, record.key), value)


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


def read_offset_key(key: bytes) -> tuple[str, TopicPartition]:
    """Decode the key. The oldest type of key has the same fields."""
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


def _offset_value(offset: CommittedOffset) -> bytes:
    if offset.expire_timestamp_ms != NO_TIMESTAMP:
        return _value_with_expiry(offset)
    metadata = offset.metadata.encode()
    value = _OFFSET_START.pack(OFFSET_VALUE_VERSION, offset.offset, offset.leader_epoch, len(metadata))
    return value + metadata + _INT64.pack(offset.commit_timestamp_ms)


def _value_with_expiry(offset: CommittedOffset) -> bytes:
    value = OffsetCommitValue(
        offset=offset.offset,
        metadata=offset.metadata,
        commit_timestamp=offset.commit_timestamp_ms,
        expire_timestamp=offset.expire_timestamp_ms,
    )
    return encode_value(value, OFFSET_VALUE_VERSION_WITH_EXPIRY)


# -- classic groups


def group_record(
    group_id: str,
    value: GroupMetadataValue,
    successor: ClassicGroup | None = None,
    replacement: StaticReplacement | None = None,
) -> GroupRecord:
    return GroupRecord(GroupMetadataKey(group_id), value, successor, replacement)


def group_tombstone(group_id: str) -> GroupRecord:
    return GroupRecord(GroupMetadataKey(group_id))
