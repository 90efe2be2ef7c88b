"""OffsetFetch without names of partitions: all committed offsets of a group, in steps.

A group may have committed offsets of thousands of partitions. They are copied in one step, so that all of them are of
the same moment. In flexible versions each is encoded at once, so that only its bytes are kept.
"""

from collections.abc import Generator
from typing import Any

from sskafka.groups.offset_requests import AllOffsets, FetchedOffset
from sskafka.model.acl import ResourceType
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.request import Request
from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.codec import encode_element
from sskafka.wire.encoded_array import EncodedArray
from sskafka.wire.messages.offset_fetch import OffsetFetchResponsePartition, OffsetFetchResponsePartitions
from sskafka.wire.varint import encode_uvarint

GROUPS_FROM = 8
NO_OFFSET = -1
OFFSETS_PER_STEP = 100
REFUSED = FetchedOffset(None, ErrorCode.UNSTABLE_OFFSET_COMMIT)


def visible_offsets(found: AllOffsets, request: Request) -> Generator[None, None, dict[str, list[Any]]]:
    """Return the offsets of the topics that the client may describe, by topic."""
    is_flexible = request.version >= API_BY_KEY[ApiKey.OFFSET_FETCH].flexible_from
    topics: dict[str, list[Any] | None] = {}
    for number, (partition, offset) in enumerate(found.offsets.items(), 1):
        if partition.topic not in topics:
            topics[partition.topic] = [] if request.may_see(ResourceType.TOPIC, partition.topic) else None
        partitions = topics[partition.topic]
        if partitions is not None:
            fetched = REFUSED if partition in found.unstable else FetchedOffset(offset)
            answer = fetched_partition(partition.partition, fetched, request.version)
            partitions.append(encode_element(answer, request.version, flexible=True) if is_flexible else answer)
        if not number % OFFSETS_PER_STEP:
            yield
    visible = {topic: partitions for topic, partitions in topics.items() if partitions is not None}
    return {topic: _encoded(partitions) for topic, partitions in visible.items()} if is_flexible else visible


def _encoded(elements: list[bytes]) -> list[Any]:
    return EncodedArray(encode_uvarint(len(elements) + 1) + b"".join(elements), lambda: elements).as_list()


def fetched_partition(
    index: int, fetched: FetchedOffset, version: int
) -> OffsetFetchResponsePartitions | OffsetFetchResponsePartition:
    """Return the result for a partition. Versions without groups have a class of their own for it."""
    made = OffsetFetchResponsePartitions if version >= GROUPS_FROM else OffsetFetchResponsePartition
    offset = fetched.offset
    if offset is None:
        return made(index, NO_OFFSET, NO_OFFSET, "", fetched.error)
    return made(index, offset.offset, offset.leader_epoch, offset.metadata, fetched.error)
