"""Hand-written codec of Produce, the hot path for every record that a broker receives.

    request    transactional id or null | acks int16 | timeout int32
               topics: name, or id from v13 on
                 partitions: index int32 | records bytes or null
    response   topics: name, or id from v13 on
                 partitions: index int32 | error code int16 | base offset int64 | append time int64
                             | log start offset int64 (v5) | record errors, error message (v8) | tag 0: leader (v10)
               throttle time int32 | tag 0: node endpoints (v10)

Version 9 turned lengths and counts into varints and ended every struct with tagged fields.
`messages.produce` describes the same format; tests compare the two.
"""

from collections.abc import Generator, Mapping, Sequence
from functools import lru_cache
from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import Final, NamedTuple, TypeAlias

from sskafka.model.ids import Uuid
from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.bounds import PRODUCE_PARTITIONS_MAX
from sskafka.wire.errors import MalformedMessageError
from sskafka.wire.fields import (
    NO_TAGS,
    compact_string_field,
    read_compact_string,
    read_string,
    require_count,
    require_end,
    require_room,
    require_text,
    string_field,
)
from sskafka.wire.leaders import CurrentLeader, NodeEndpoint, current_leader_field, node_endpoints_section
from sskafka.wire.varint import decode_uvarint, encode_uvarint, skip_tagged_fields

LOG_START_OFFSET_FROM: Final = 5
ERROR_MESSAGE_FROM: Final = 8
FLEXIBLE_FROM: Final = API_BY_KEY[ApiKey.PRODUCE].flexible_from
CURRENT_LEADER_FROM: Final = 10
TOPIC_ID_FROM: Final = 13

Topic: TypeAlias = str | Uuid
"""A name up to version 12, an id from version 13 on."""

PartitionRecords: TypeAlias = tuple[int, memoryview | None]
"""Partition, and its records: a slice of the request, writable if the request's buffer is."""

OnlyBatch: TypeAlias = tuple[Topic, int, memoryview, int, int]
"""Topic, partition and records of a request with a single batch; acks and timeout."""

ProducedPartition: TypeAlias = tuple[int, int, int, int, int, str | None, Sequence[tuple[int, str | None]]]
"""Partition, error code, base offset, log append time or -1, log start offset, error message, and the record errors,
each with the index of the record in its batch and a message."""

Leaders: TypeAlias = Mapping[tuple[Topic, int], CurrentLeader]


class ProduceRequestView(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[tuple[Topic, list[PartitionRecords]]]


_TOO_SHORT = (StructError, IndexError, UnicodeDecodeError)
_NO_TAGS_OF_THREE: Final = bytes(3)  # no tagged fields in the partition, the topic and the request

_only_start_v9_at: Final = Struct(
    ">BhibB"
).unpack_from  # transactional id, acks, timeout, topics + 1, length of name + 1
_count_and_index_at: Final = Struct(">bi").unpack_from
_only_start_v3_at: Final = Struct(">hhiih").unpack_from  # length of the transactional id, ..., length of the name
_only_partition_v3_at: Final = Struct(">iii").unpack_from  # number of partitions, index, length of the records
_int32_at: Final = Struct(">i").unpack_from
_acks_and_timeout_at: Final = Struct(">hi").unpack_from
_acks_timeout_and_count_at: Final = Struct(">hii").unpack_from
_index_and_length_at: Final = Struct(">ii").unpack_from


def decode_produce_request(buffer: memoryview, position: int, version: int) -> ProduceRequestView:
    """Decode the request that fills `buffer` from `position` on; raise only MalformedMessageError."""
    try:
        if version >= FLEXIBLE_FROM:
            return _decode_flexible(buffer, position, version >= TOPIC_ID_FROM)
        return _decode_legacy(buffer, position)
    except (*_TOO_SHORT, MalformedMessageError) as error:
        raise MalformedMessageError(f"ProduceRequest v{version}: {error}") from error


def decode_only_batch(buffer: memoryview, position: int, version: int) -> OnlyBatch | None:
    """Decode a request of the common form: no transaction, one topic, one partition with records, no tagged fields.

    Return None for any other request; `decode_produce_request` detects malformed ones."""
    try:
        if version >= FLEXIBLE_FROM:
            return _only_batch_v9(buffer, position, version >= TOPIC_ID_FROM)
        return _only_batch_v3(buffer, position)
    except _TOO_SHORT:
        return None


def _only_batch_v9(buffer: memoryview, position: int, has_topic_ids: bool) -> OnlyBatch | None:
    transactional_id, acks, timeout_ms, topic_count, name_length = _only_start_v9_at(buffer, position)
    if transactional_id or topic_count != 2:
        return None
    topic: Topic
    if has_topic_ids:
        stop = position + 24
        topic = buffer[position + 8 : stop].tobytes()
    elif 0 < name_length < 0x80:
        stop = position + 8 + name_length
        topic = str(buffer[position + 9 : stop], "utf-8")
    else:
        return None
    partition_count, index = _count_and_index_at(buffer, stop)
    length, start = decode_uvarint(buffer, stop + 5)
    end = start + length - 1
    if partition_count != 2 or not length or buffer[end:] != _NO_TAGS_OF_THREE:
        return None
    return topic, index, buffer[start:end], acks, timeout_ms


def _only_batch_v3(buffer: memoryview, position: int) -> OnlyBatch | None:
    id_length, acks, timeout_ms, topic_count, name_length = _only_start_v3_at(buffer, position)
    if id_length >= 0 or topic_count != 1 or name_length < 0:
        return None
    position += 14
    stop = position + name_length
    partition_count, index, length = _only_partition_v3_at(buffer, stop)
    if partition_count != 1 or length < 0 or stop + 12 + length != len(buffer):
        return None
    return str(buffer[position:stop], "utf-8"), index, buffer[stop + 12 :], acks, timeout_ms


def _decode_flexible(buffer: memoryview, position: int, has_topic_ids: bool) -> ProduceRequestView:
    transactional_id, position = read_compact_string(buffer, position)
    acks, timeout_ms = _acks_and_timeout_at(buffer, position)
    count, position = decode_uvarint(buffer, position + 6)
    topics: list[tuple[Topic, list[PartitionRecords]]] = []
    room = PRODUCE_PARTITIONS_MAX
    for _ in range(require_count(count - 1)):
        if has_topic_ids:
            topic_id = buffer[position : position + 16].tobytes()
            partitions, position = _flexible_partitions(buffer, position + 16)
            topics.append((topic_id, partitions))
        else:
            name, position = read_compact_string(buffer, position)
            partitions, position = _flexible_partitions(buffer, position)
            topics.append((require_text(name), partitions))
        room -= 1 + len(partitions)
        require_room(room)
        position = skip_tagged_fields(buffer, position) if buffer[position] else position + 1
    position = skip_tagged_fields(buffer, position) if buffer[position] else position + 1
    require_end(buffer, position)
    return ProduceRequestView(transactional_id, acks, timeout_ms, topics)


def _flexible_partitions(buffer: memoryview, position: int) -> tuple[list[PartitionRecords], int]:
    end = len(buffer)
    count, position = decode_uvarint(buffer, position)
    partitions: list[PartitionRecords] = []
    require_room(PRODUCE_PARTITIONS_MAX - count)
    for _ in range(require_count(count - 1)):
        (index,) = _int32_at(buffer, position)
        length, position = decode_uvarint(buffer, position + 4)
        if length:
            stop = position + length - 1
            if stop > end:
                raise MalformedMessageError(f"records have {length - 1} bytes, but only {end - position} are left")
            partitions.append((index, buffer[position:stop]))
            position = stop
        else:
            partitions.append((index, None))
        position = skip_tagged_fields(buffer, position) if buffer[position] else position + 1
    return partitions, position


def _decode_legacy(buffer: memoryview, position: int) -> ProduceRequestView:
    transactional_id, position = read_string(buffer, position)
    acks, timeout_ms, count = _acks_timeout_and_count_at(buffer, position)
    position += 10
    topics: list[tuple[Topic, list[PartitionRecords]]] = []
    room = PRODUCE_PARTITIONS_MAX
    for _ in range(require_count(count)):
        name, position = read_string(buffer, position)
        partitions, position = _legacy_partitions(buffer, position)
        topics.append((require_text(name), partitions))
        room -= 1 + len(partitions)
        require_room(room)
    require_end(buffer, position)
    return ProduceRequestView(transactional_id, acks, timeout_ms, topics)


def _legacy_partitions(buffer: memoryview, position: int) -> tuple[list[PartitionRecords], int]:
    end = len(buffer)
    (count,) = _int32_at(buffer, position)
    position += 4
    partitions: list[PartitionRecords] = []
    require_room(PRODUCE_PARTITIONS_MAX - count)
    for _ in range(require_count(count)):
        index, length = _index_and_length_at(buffer, position)
        position += 8
        if length < 0:
            partitions.append((index, None))
            continue
        stop = position + length
        if stop > end:
            raise MalformedMessageError(f"records have {length} bytes, but only {end - position} are left")
        partitions.append((index, buffer[position:stop]))
        position = stop
    return partitions, position


_pack_int32: Final = Struct(">i").pack
_pack_start: Final = Struct(">ii").pack  # correlation id, number of topics
_pack_flexible_start: Final = Struct(">ix").pack  # correlation id, no tags
_pack_partition_v3: Final = Struct(">ihqq").pack
_pack_partition_v5: Final = Struct(">ihqqq").pack

# The response for one partition of one topic, the usual case: the fields before and after the topic.
_ONLY_START_V5: Final = Struct(">iii")  # size, correlation id, 1 topic
_ONLY_END_V5: Final = Struct(">iihqqqi")  # 1 partition, its fields, throttle time
_ONLY_START_V9: Final = Struct(">iixB")  # size, correlation id, no tags, 1 topic
_ONLY_END_V9: Final = Struct(">BihqqqBxxxix")  # 1 partition, its fields, no errors, message or tags, throttle time
_ONLY_SIZE_V5: Final = _ONLY_START_V5.size + _ONLY_END_V5.size - 4
_ONLY_SIZE_V9: Final = _ONLY_START_V9.size + _ONLY_END_V9.size - 4


def encode_produce_response(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[Topic, Sequence[ProducedPartition]]],
    throttle_ms: int = 0,
    *,
    leaders: Leaders | None = None,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> bytes:
    """Return the whole frame, including its size. `leaders` and `node_endpoints` are encoded from version 10 on."""
    if version < FLEXIBLE_FROM:
        body = _encode_legacy(version, correlation_id, topics, throttle_ms)
    elif version < CURRENT_LEADER_FROM:
        body = _encode_flexible(correlation_id, topics, throttle_ms, {}, ())
    else:
        body = _encode_flexible(correlation_id, topics, throttle_ms, leaders or {}, node_endpoints)
    return _pack_int32(len(body)) + body


def encode_produce_response_in_slices(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[Topic, Sequence[ProducedPartition]]],
    *,
    leaders: Leaders,
    node_endpoints: Sequence[NodeEndpoint],
) -> Generator[None, None, bytes]:
    """Encode a response with many partitions; yield after each."""
    is_flexible = version >= FLEXIBLE_FROM
    if version < CURRENT_LEADER_FROM:
        leaders, node_endpoints = {}, ()
    parts = [_start(is_flexible, correlation_id, len(topics))]
    for topic, partitions in topics:
        parts.append(_topic_start(is_flexible, topic, len(partitions)))
        for partition in partitions:
            if is_flexible:
                parts += _flexible_partition(partition, leaders.get((topic, partition[0])))
            else:
                parts.append(_legacy_partition(version, partition))
            yield
        if is_flexible:
            parts.append(NO_TAGS)
    parts.append(_pack_int32(0))
    if is_flexible:
        parts.append(node_endpoints_section(node_endpoints))
    return _pack_int32(sum(map(len, parts))) + b"".join(parts)


def encode_produced(version: int, correlation_id: int, topic: Topic, produced: ProducedPartition) -> bytes:
    """Return the whole frame of a response for one partition without an error message, the usual case."""
    index, error_code, base_offset, append_time_ms, log_start_offset, _, _ = produced
    if version >= FLEXIBLE_FROM:
        name = topic if isinstance(topic, bytes) else _compact_name(topic)
        return b"".join(
            (
                _ONLY_START_V9.pack(_ONLY_SIZE_V9 + len(name), correlation_id, 2),
                name,
                _ONLY_END_V9.pack(2, index, error_code, base_offset, append_time_ms, log_start_offset, 1, 0),
            )
        )
    if LOG_START_OFFSET_FROM <= version < ERROR_MESSAGE_FROM:
        name = _name_field(topic)
        return b"".join(
            (
                _ONLY_START_V5.pack(_ONLY_SIZE_V5 + len(name), correlation_id, 1),
                name,
                _ONLY_END_V5.pack(1, index, error_code, base_offset, append_time_ms, log_start_offset, 0),
            )
        )
    return encode_produce_response(version, correlation_id, [(topic, [produced])])


@lru_cache(maxsize=4096)
def _name_field(topic: Topic) -> bytes:
    assert isinstance(topic, str), "versions before 13 have topic names"
    return string_field(topic)


_compact_name: Final = lru_cache(maxsize=4096)(compact_string_field)


def _encode_flexible(
    correlation_id: int,
    topics: Sequence[tuple[Topic, Sequence[ProducedPartition]]],
    throttle_ms: int,
    leaders: Leaders,
    node_endpoints: Sequence[NodeEndpoint],
) -> bytes:
    parts = [_start(True, correlation_id, len(topics))]
    for topic, partitions in topics:
        parts.append(_topic_start(True, topic, len(partitions)))
        for partition in partitions:
            parts += _flexible_partition(partition, leaders.get((topic, partition[0])))
        parts.append(NO_TAGS)
    parts.append(_pack_int32(throttle_ms))
    parts.append(node_endpoints_section(node_endpoints))
    return b"".join(parts)


def _start(is_flexible: bool, correlation_id: int, topic_count: int) -> bytes:
    if is_flexible:
        return _pack_flexible_start(correlation_id) + encode_uvarint(topic_count + 1)
    return _pack_start(correlation_id, topic_count)


def _topic_start(is_flexible: bool, topic: Topic, partition_count: int) -> bytes:
    if not is_flexible:
        return _name_field(topic) + _pack_int32(partition_count)
    name = topic if isinstance(topic, bytes) else compact_string_field(topic)
    return name + encode_uvarint(partition_count + 1)


def _flexible_partition(
    partition: ProducedPartition, leader: CurrentLeader | None
) -> tuple[bytes, bytes, bytes, bytes]:
    return (
        _pack_partition_v5(*partition[:5]),
        _flexible_record_errors(partition[6]) if partition[6] else _NO_RECORD_ERRORS,
        compact_string_field(partition[5]),
        NO_TAGS if leader is None else b"\x01" + current_leader_field(0, leader),
    )


_NO_RECORD_ERRORS: Final = b"\x01"  # an empty compact array


def _flexible_record_errors(errors: Sequence[tuple[int, str | None]]) -> bytes:
    described = b"".join(_pack_int32(number) + compact_string_field(text) + NO_TAGS for number, text in errors)
    return encode_uvarint(len(errors) + 1) + described


def _encode_legacy(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[Topic, Sequence[ProducedPartition]]],
    throttle_ms: int,
) -> bytes:
    parts = [_start(False, correlation_id, len(topics))]
    for topic, partitions in topics:
        parts.append(_topic_start(False, topic, len(partitions)))
        parts.extend(_legacy_partition(version, partition) for partition in partitions)
    parts.append(_pack_int32(throttle_ms))
    return b"".join(parts)


def _legacy_partition(version: int, partition: ProducedPartition) -> bytes:
    if version >= ERROR_MESSAGE_FROM:
        errors = b"".join(_pack_int32(number) + string_field(text) for number, text in partition[6])
        count = _pack_int32(len(partition[6]))
        return _pack_partition_v5(*partition[:5]) + count + errors + string_field(partition[5])
    if version >= LOG_START_OFFSET_FROM:
        return _pack_partition_v5(*partition[:5])
    return _pack_partition_v3(*partition[:4])
