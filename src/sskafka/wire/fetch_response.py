"""Hand-written encoder of Fetch responses: a list of buffers that contains the records as they are, without a copy.

    size int32 | correlation id int32 | throttle time int32 | error code int16, session id int32 (v7)
    topics: name, or id from v13 on
      partitions: index int32 | error code int16 | high watermark int64 | last stable offset int64
                  | log start offset int64 (v5) | aborted transactions or null: producer id int64, first offset int64
                  | preferred read replica int32 (v11) | records bytes
                  | tags (v12): 0 diverging epoch, 1 current leader, 2 snapshot id
    tag 0 (v16): node endpoints

Version 12 turned lengths and counts into varints and ended every struct with tagged fields.
"""

from collections.abc import Generator, Sequence
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

from sskafka.model.ids import EpochEnd, Uuid
from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.fields import NO_TAGS, compact_string_field, string_field
from sskafka.wire.leaders import CurrentLeader, NodeEndpoint, current_leader_field, node_endpoints_section
from sskafka.wire.varint import encode_uvarint

LOG_START_OFFSET_FROM: Final = 5
SESSION_FROM: Final = 7
PREFERRED_REPLICA_FROM: Final = 11
FLEXIBLE_FROM: Final = API_BY_KEY[ApiKey.FETCH].flexible_from
NODE_ENDPOINTS_FROM: Final = 16

Topic: TypeAlias = str | Uuid
"""A name up to version 12, an id from version 13 on."""

AbortedTransaction: TypeAlias = tuple[int, int]
"""Producer id, and the first offset of its aborted transaction."""


class PartitionTags(NamedTuple):
    """Tagged fields for followers, quorum members, and clients that fetch from a broker that is not the leader."""

    diverging_epoch: EpochEnd | None = None
    current_leader: CurrentLeader | None = None
    snapshot_id: EpochEnd | None = None


class FetchedPartition(NamedTuple):
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Sequence[AbortedTransaction] | None
    preferred_read_replica: int
    records_size: int
    records_parts: Sequence[Any]
    """Parts that the connection can send, together `records_size` bytes; they are passed on unchanged."""
    tags: PartitionTags | None = None


_pack_int32: Final = Struct(">i").pack
_pack_transaction: Final = Struct(">qq").pack
_pack_start_v4: Final = Struct(">iii").pack  # correlation id, throttle time, number of topics
_pack_start_v7: Final = Struct(">iihii").pack  # correlation id, throttle time, error code, session id, number of topics
_pack_start_v12: Final = Struct(">ixihi").pack  # correlation id, no tags, throttle time, error code, session id
_pack_partition_v4: Final = Struct(">ihqq").pack
_pack_partition_v5: Final = Struct(">ihqqq").pack
_pack_partition_v12: Final = Struct(">ihqqqBi").pack  # ..., number of aborted transactions + 1, preferred read replica
_pack_epoch_end: Final = Struct(">BBiqx").pack
_pack_snapshot_id: Final = Struct(">BBqix").pack

# The response for one partition of one topic: the fields before the topic, and those from the topic up to the records.
_ONLY_START_V12: Final = Struct(">iixihiB")  # size, correlation id, tags, throttle time, error, session id, 1 topic
_ONLY_PARTITION_V12: Final = Struct(">BihqqqBi")  # 1 partition, its fields up to the preferred read replica
_ONLY_SIZE_V12: Final = _ONLY_START_V12.size + _ONLY_PARTITION_V12.size - 4 + 3
_NO_TAGS_OF_THREE: Final = bytes(3)  # of the partition, the topic and the response

_NULL_ARRAY: Final = b"\xff\xff\xff\xff"


def encode_fetch_response(
    version: int,
    correlation_id: int,
    throttle_ms: int,
    error_code: int,
    session_id: int,
    topics: Sequence[tuple[Topic, Sequence[FetchedPartition]]],
    *,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> list[Any]:
    """Return the parts of the whole frame, including its size. `node_endpoints` are encoded from version 16 on."""
    if version < FLEXIBLE_FROM:
        return _encode_legacy(version, correlation_id, throttle_ms, error_code, session_id, topics)
    if len(topics) == 1 and not node_endpoints:
        topic, partitions = topics[0]
        if len(partitions) == 1 and not partitions[0].aborted and partitions[0].tags is None:
            return _only_partition_v12(correlation_id, throttle_ms, error_code, session_id, topic, partitions[0])
    frame = _Frame()
    frame.add(_pack_start_v12(correlation_id, throttle_ms, error_code, session_id))
    _flexible_topics(frame, topics)
    frame.add(node_endpoints_section(node_endpoints) if version >= NODE_ENDPOINTS_FROM else NO_TAGS)
    return frame.finish()


def encode_fetch_response_in_slices(
    version: int,
    correlation_id: int,
    session_id: int,
    topics: Sequence[tuple[Topic, Sequence[FetchedPartition]]],
    node_endpoints: Sequence[NodeEndpoint],
) -> Generator[None, None, list[Any]]:
    """Encode a response with many partitions, without an error code; yield after each partition."""
    frame = _Frame()
    is_flexible = version >= FLEXIBLE_FROM
    if is_flexible:
        frame.add(_pack_start_v12(correlation_id, 0, 0, session_id))
        frame.add(encode_uvarint(len(topics) + 1))
    else:
        _legacy_start(frame, version, correlation_id, 0, 0, session_id, len(topics))
    for topic, partitions in topics:
        if is_flexible:
            frame.add(topic if isinstance(topic, bytes) else compact_string_field(topic))
            frame.add(encode_uvarint(len(partitions) + 1))
        else:
            _legacy_topic(frame, topic, len(partitions))
        for partition in partitions:
            if is_flexible:
                _flexible_partition(frame, partition)
            else:
                _legacy_partition(frame, version, partition)
            yield
        if is_flexible:
            frame.add(NO_TAGS)
    if is_flexible:
        frame.add(node_endpoints_section(node_endpoints) if version >= NODE_ENDPOINTS_FROM else NO_TAGS)
    return frame.finish()


def _only_partition_v12(
    correlation_id: int,
    throttle_ms: int,
    error_code: int,
    session_id: int,
    topic: Topic,
    partition: FetchedPartition,
) -> list[Any]:
    name = topic if isinstance(topic, bytes) else compact_string_field(topic)
    index, error, watermark, stable, start, aborted, preferred, size_bytes, parts, _ = partition
    length = encode_uvarint(size_bytes + 1)
    head = (
        _ONLY_START_V12.pack(
            _ONLY_SIZE_V12 + len(name) + len(length) + size_bytes,
            correlation_id,
            throttle_ms,
            error_code,
            session_id,
            2,
        )
        + name
        + _ONLY_PARTITION_V12.pack(2, index, error, watermark, stable, start, 0 if aborted is None else 1, preferred)
        + length
    )
    return [head, *parts, _NO_TAGS_OF_THREE] if size_bytes else [head + _NO_TAGS_OF_THREE]


class _Frame:
    """Collects the parts of a frame: joins bytes between records, and prepends the frame size."""

    __slots__ = ("_parts", "_pending", "_size", "add")

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self._pending: list[bytes] = []
        self._size = 0
        self.add = self._pending.append

    def add_records(self, size_bytes: int, parts: Sequence[Any]) -> None:
        if size_bytes:
            self._close_pending()
            self._parts += parts
            self._size += size_bytes

    def _close_pending(self) -> None:
        joined = b"".join(self._pending)
        self._pending.clear()
        self._parts.append(joined)
        self._size += len(joined)

    def finish(self) -> list[Any]:
        if self._pending:
            self._close_pending()
        self._parts[0] = _pack_int32(self._size) + self._parts[0]
        return self._parts


def _flexible_topics(frame: _Frame, topics: Sequence[tuple[Topic, Sequence[FetchedPartition]]]) -> None:
    frame.add(encode_uvarint(len(topics) + 1))
    for topic, partitions in topics:
        frame.add(topic if isinstance(topic, bytes) else compact_string_field(topic))
        frame.add(encode_uvarint(len(partitions) + 1))
        for partition in partitions:
            _flexible_partition(frame, partition)
        frame.add(NO_TAGS)


def _flexible_partition(frame: _Frame, partition: FetchedPartition) -> None:
    index, error, watermark, stable, start, aborted, preferred, size_bytes, parts, tags = partition
    if aborted:
        frame.add(_pack_partition_v5(index, error, watermark, stable, start))
        frame.add(_compact_aborted(aborted))
        frame.add(_pack_int32(preferred))
    else:
        frame.add(_pack_partition_v12(index, error, watermark, stable, start, 0 if aborted is None else 1, preferred))
    frame.add(encode_uvarint(size_bytes + 1))
    frame.add_records(size_bytes, parts)
    frame.add(NO_TAGS if tags is None else _partition_tags(tags))


def _compact_aborted(aborted: Sequence[AbortedTransaction]) -> bytes:
    entries = [_pack_transaction(*transaction) + NO_TAGS for transaction in aborted]
    return encode_uvarint(len(aborted) + 1) + b"".join(entries)


def _partition_tags(tags: PartitionTags) -> bytes:
    diverging, leader, snapshot = tags
    fields = []
    if diverging is not None:
        fields.append(_pack_epoch_end(0, 13, diverging.epoch, diverging.end_offset))
    if leader is not None:
        fields.append(current_leader_field(1, leader))
    if snapshot is not None:
        fields.append(_pack_snapshot_id(2, 13, snapshot.end_offset, snapshot.epoch))
    return encode_uvarint(len(fields)) + b"".join(fields)


def _encode_legacy(
    version: int,
    correlation_id: int,
    throttle_ms: int,
    error_code: int,
    session_id: int,
    topics: Sequence[tuple[Topic, Sequence[FetchedPartition]]],
) -> list[Any]:
    frame = _Frame()
    _legacy_start(frame, version, correlation_id, throttle_ms, error_code, session_id, len(topics))
    for topic, partitions in topics:
        _legacy_topic(frame, topic, len(partitions))
        for partition in partitions:
            _legacy_partition(frame, version, partition)
    return frame.finish()


def _legacy_start(
    frame: _Frame,
    version: int,
    correlation_id: int,
    throttle_ms: int,
    error_code: int,
    session_id: int,
    topic_count: int,
) -> None:
    if version >= SESSION_FROM:
        frame.add(_pack_start_v7(correlation_id, throttle_ms, error_code, session_id, topic_count))
    else:
        frame.add(_pack_start_v4(correlation_id, throttle_ms, topic_count))


def _legacy_topic(frame: _Frame, topic: Topic, partition_count: int) -> None:
    assert isinstance(topic, str), "versions before 13 have topic names"
    frame.add(string_field(topic))
    frame.add(_pack_int32(partition_count))


def _legacy_partition(frame: _Frame, version: int, partition: FetchedPartition) -> None:
    index, error, watermark, stable, start, aborted, preferred, size_bytes, parts, _ = partition
    if version >= LOG_START_OFFSET_FROM:
        frame.add(_pack_partition_v5(index, error, watermark, stable, start))
    else:
        frame.add(_pack_partition_v4(index, error, watermark, stable))
    frame.add(_NULL_ARRAY if aborted is None else _legacy_aborted(aborted))
    if version >= PREFERRED_REPLICA_FROM:
        frame.add(_pack_int32(preferred))
    frame.add(_pack_int32(size_bytes))
    frame.add_records(size_bytes, parts)


def _legacy_aborted(aborted: Sequence[AbortedTransaction]) -> bytes:
    entries = [_pack_transaction(*transaction) for transaction in aborted]
    return _pack_int32(len(aborted)) + b"".join(entries)
