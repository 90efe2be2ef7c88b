"""Hand-written codec of Fetch: requests here, responses in `fetch_response`, whose names are re-exported here.

    request    replica id int32 (up to v14) | max wait int32 | min bytes int32 | max bytes int32 | isolation level int8
               | session id int32, session epoch int32 (v7)
               topics: name, or id from v13 on
                 partitions: index int32 | leader epoch int32 (v9) | fetch offset int64 | last fetched epoch int32 (v12)
                             | log start offset int64 (v5) | max bytes int32 | tag 0: directory id (v17)
                             | tag 1: high watermark (v18)
               forgotten topics: name or id | partitions int32 (v7)
               rack id (v11) | tag 0: cluster id (v12) | tag 1: replica id int32, replica epoch int64 (v15)

Version 12 turned lengths and counts into varints and ended every struct with tagged fields.
`messages.fetch` describes the same format; tests compare the two.
"""

from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import Final, NamedTuple, TypeAlias

from sskafka.model.ids import ZERO_UUID, Uuid
from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.bounds import FETCH_PARTITIONS_MAX
from sskafka.wire.errors import MalformedMessageError
from sskafka.wire.fetch_response import (
    FetchedPartition,
    PartitionTags,
    Topic,
    encode_fetch_response,
    encode_fetch_response_in_slices,
)
from sskafka.wire.fields import read_compact_string, read_string, require_count, require_end, require_room, require_text
from sskafka.wire.varint import decode_uvarint, read_tagged_fields, skip_tagged_fields

__all__ = [
    "FetchRequestView",
    "FetchedPartition",
    "PartitionFetch",
    "PartitionTags",
    "ReplicaTags",
    "Topic",
    "decode_fetch_request",
    "encode_fetch_response",
    "encode_fetch_response_in_slices",
]

LOG_START_OFFSET_FROM: Final = 5
SESSION_FROM: Final = 7
LEADER_EPOCH_FROM: Final = 9
RACK_FROM: Final = 11
FLEXIBLE_FROM: Final = API_BY_KEY[ApiKey.FETCH].flexible_from
TOPIC_ID_FROM: Final = 13
REPLICA_STATE_FROM: Final = 15
DIRECTORY_ID_FROM: Final = 17
HIGH_WATERMARK_FROM: Final = 18

UNKNOWN: Final = -1
UNSUPPORTED_HIGH_WATERMARK: Final = 0x7FFF_FFFF_FFFF_FFFF
"""Value for followers that do not report their high watermark."""

PartitionFetch: TypeAlias = tuple[int, int, int, int, int, int]
"""Partition, current leader epoch, fetch offset, last fetched epoch, log start offset, max bytes."""


class ReplicaTags(NamedTuple):
    """Tagged fields of a partition, which only followers and quorum members send."""

    directory_id: Uuid = ZERO_UUID
    high_watermark: int = UNSUPPORTED_HIGH_WATERMARK


class FetchRequestView(NamedTuple):
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    replica_id: int
    replica_epoch: int
    topics: list[tuple[Topic, list[PartitionFetch]]]
    forgotten: list[tuple[Topic, list[int]]]
    rack_id: str
    cluster_id: str | None
    replica_tags: dict[tuple[Topic, int], ReplicaTags]
    """Contains only partitions that have tagged fields."""


_new_view: Final = tuple.__new__  # costs a third of calling a NamedTuple
_NOTHING_MORE: Final[bytes] = b"\x01\x01\x00"  # no forgotten topics, no rack, no tagged fields
_int32_at: Final = Struct(">i").unpack_from
_start_v4_at: Final = Struct(">iiiib").unpack_from  # starts with the replica id
_start_v7_at: Final = Struct(">iiiibii").unpack_from
_start_v15_at: Final = Struct(">iiibii").unpack_from  # starts with the max wait
_partition_v4_at: Final = Struct(">iqi").unpack_from
_partition_v5_at: Final = Struct(">iqqi").unpack_from
_partition_v9_at: Final = Struct(">iiqqi").unpack_from
_partition_v12_at: Final = Struct(">iiqiqi").unpack_from
_replica_state_at: Final = Struct(">iq").unpack_from
_unpack_high_watermark: Final = Struct(">q").unpack
_unpack_uuid: Final = Struct(">16s").unpack


def decode_fetch_request(buffer: memoryview, position: int, version: int) -> FetchRequestView:
    """Decode the request that fills `buffer` from `position` on; raise only MalformedMessageError."""
    try:
        if version >= FLEXIBLE_FROM:
            return _decode_flexible(buffer, position, version)
        return _decode_legacy(buffer, position, version)
    except (StructError, IndexError, UnicodeDecodeError, MalformedMessageError) as error:
        raise MalformedMessageError(f"FetchRequest v{version}: {error}") from error


def _decode_flexible(buffer: memoryview, position: int, version: int) -> FetchRequestView:
    replica_id = UNKNOWN
    if version < REPLICA_STATE_FROM:
        (replica_id,) = _int32_at(buffer, position)
        position += 4
    max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = _start_v15_at(buffer, position)
    replica_tags: dict[tuple[Topic, int], ReplicaTags] = {}
    topics, position = _flexible_topics(buffer, position + 21, version, replica_tags)
    view = _new_view(
        FetchRequestView,
        (
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            session_id,
            session_epoch,
            replica_id,
            UNKNOWN,
            topics,
            [],
            "",
            None,
            replica_tags,
        ),
    )
    return view if buffer[position:] == _NOTHING_MORE else _with_rest(view, buffer, position, version)


def _with_rest(view: FetchRequestView, buffer: memoryview, position: int, version: int) -> FetchRequestView:
    """Return the view with the fields after the topics."""
    forgotten, position = _flexible_forgotten(buffer, position, version)
    rack_id, position = read_compact_string(buffer, position)
    tags, position = read_tagged_fields(buffer, position)
    require_end(buffer, position)
    replica_id, replica_epoch, cluster_id = view.replica_id, view.replica_epoch, None
    for tag, field in tags:
        if tag == 0:
            cluster_id, end = read_compact_string(field, 0)
            require_end(field, end)
        elif tag == 1 and version >= REPLICA_STATE_FROM:
            replica_id, replica_epoch = _replica_state_at(field, 0)
            require_end(field, skip_tagged_fields(field, 12))
    return _new_view(  # `_replace` would cost more than all of the above
        FetchRequestView,
        (
            *view[:6],
            replica_id,
            replica_epoch,
            view.topics,
            forgotten,
            require_text(rack_id),
            cluster_id,
            view.replica_tags,
        ),
    )


def _flexible_topics(
    buffer: memoryview, position: int, version: int, replica_tags: dict[tuple[Topic, int], ReplicaTags]
) -> tuple[list[tuple[Topic, list[PartitionFetch]]], int]:
    count, position = decode_uvarint(buffer, position)
    topics: list[tuple[Topic, list[PartitionFetch]]] = []
    topic: Topic
    room = FETCH_PARTITIONS_MAX
    for _ in range(require_count(count - 1)):
        if version >= TOPIC_ID_FROM:
            topic = buffer[position : position + 16].tobytes()
            position += 16
        else:
            topic, position = _flexible_topic(buffer, position, version)
        count, position = decode_uvarint(buffer, position)
        partitions: list[PartitionFetch] = []
        room -= count
        require_room(room)
        for _ in range(require_count(count - 1)):
            partition = _partition_v12_at(buffer, position)
            partitions.append(partition)
            position += 32
            if buffer[position]:
                replica_tags[topic, partition[0]], position = _read_replica_tags(buffer, position, version)
            else:
                position += 1
        topics.append((topic, partitions))
        position = skip_tagged_fields(buffer, position) if buffer[position] else position + 1
    return topics, position


def _flexible_topic(buffer: memoryview, position: int, version: int) -> tuple[Topic, int]:
    if version >= TOPIC_ID_FROM:
        return buffer[position : position + 16].tobytes(), position + 16
    name, position = read_compact_string(buffer, position)
    return require_text(name), position


def _read_replica_tags(buffer: memoryview, position: int, version: int) -> tuple[ReplicaTags, int]:
    tags, position = read_tagged_fields(buffer, position)
    directory_id, high_watermark = ReplicaTags()
    for tag, field in tags:
        if tag == 0 and version >= DIRECTORY_ID_FROM:
            (directory_id,) = _unpack_uuid(field)
        elif tag == 1 and version >= HIGH_WATERMARK_FROM:
            (high_watermark,) = _unpack_high_watermark(field)
    return ReplicaTags(directory_id, high_watermark), position


def _flexible_forgotten(buffer: memoryview, position: int, version: int) -> tuple[list[tuple[Topic, list[int]]], int]:
    count, position = decode_uvarint(buffer, position)
    room = FETCH_PARTITIONS_MAX
    forgotten: list[tuple[Topic, list[int]]] = []
    for _ in range(require_count(count - 1)):
        topic, position = _flexible_topic(buffer, position, version)
        count, position = decode_uvarint(buffer, position)
        room -= count
        require_room(room)
        partitions, position = _partition_indexes(buffer, position, count - 1)
        forgotten.append((topic, partitions))
        position = skip_tagged_fields(buffer, position)
    return forgotten, position


def _partition_indexes(buffer: memoryview, position: int, count: int) -> tuple[list[int], int]:
    stop = position + 4 * require_count(count)
    return [_int32_at(buffer, at)[0] for at in range(position, stop, 4)], stop


def _decode_legacy(buffer: memoryview, position: int, version: int) -> FetchRequestView:
    session_id, session_epoch, rack_id = 0, UNKNOWN, ""
    forgotten: list[tuple[Topic, list[int]]] = []
    if version >= SESSION_FROM:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = _start_v7_at(
            buffer, position
        )
        position += 25
    else:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level = _start_v4_at(buffer, position)
        position += 17
    topics, position = _legacy_topics(buffer, position, version)
    if version >= SESSION_FROM:
        forgotten, position = _legacy_forgotten(buffer, position)
    if version >= RACK_FROM:
        rack, position = read_string(buffer, position)
        rack_id = require_text(rack)
    require_end(buffer, position)
    return FetchRequestView(
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        replica_id,
        UNKNOWN,
        topics,
        forgotten,
        rack_id,
        None,
        {},
    )


def _legacy_topics(
    buffer: memoryview, position: int, version: int
) -> tuple[list[tuple[Topic, list[PartitionFetch]]], int]:
    (count,) = _int32_at(buffer, position)
    position += 4
    topics: list[tuple[Topic, list[PartitionFetch]]] = []
    room = FETCH_PARTITIONS_MAX
    for _ in range(require_count(count)):
        name, position = read_string(buffer, position)
        (count,) = _int32_at(buffer, position)
        position += 4
        partitions: list[PartitionFetch] = []
        room -= 1 + count
        require_room(room)
        for _ in range(require_count(count)):
            partition, position = _legacy_partition(buffer, position, version)
            partitions.append(partition)
        topics.append((require_text(name), partitions))
    return topics, position


def _legacy_partition(buffer: memoryview, position: int, version: int) -> tuple[PartitionFetch, int]:
    if version >= LEADER_EPOCH_FROM:
        index, leader_epoch, offset, log_start_offset, max_bytes = _partition_v9_at(buffer, position)
        return (index, leader_epoch, offset, UNKNOWN, log_start_offset, max_bytes), position + 28
    if version >= LOG_START_OFFSET_FROM:
        index, offset, log_start_offset, max_bytes = _partition_v5_at(buffer, position)
        return (index, UNKNOWN, offset, UNKNOWN, log_start_offset, max_bytes), position + 24
    index, offset, max_bytes = _partition_v4_at(buffer, position)
    return (index, UNKNOWN, offset, UNKNOWN, UNKNOWN, max_bytes), position + 16


def _legacy_forgotten(buffer: memoryview, position: int) -> tuple[list[tuple[Topic, list[int]]], int]:
    (count,) = _int32_at(buffer, position)
    position += 4
    room = FETCH_PARTITIONS_MAX
    forgotten: list[tuple[Topic, list[int]]] = []
    for _ in range(require_count(count)):
        name, position = read_string(buffer, position)
        (count,) = _int32_at(buffer, position)
        room -= 1 + count
        require_room(room)
        partitions, position = _partition_indexes(buffer, position + 4, count)
        forgotten.append((require_text(name), partitions))
    return forgotten, position
