"""Sets of partitions, encoded for records and responses as arrays of topics with their partitions, and of names.

    array      length + 1 (uvarint), then for each topic:
    topic      uuid · number of partitions + 1 (uvarint) · int32 for each partition · tagged fields

An assignment may have thousands of topics. The part of a topic that follows its id depends only on the mask of its
partitions, and nearly all topics of an assignment have one of few masks, so it is packed once for each mask. Tests
compare the result with that of the codec.
"""

from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from struct import Struct, pack
from typing import Any, TypeVar

from sskafka.groups.partition_set import Block, Partition, PartitionSet, numbers_of
from sskafka.model.computation import Computation, finished
from sskafka.model.ids import Uuid
from sskafka.wire.encoded_array import EncodedArray
from sskafka.wire.messages import group_records as wire
from sskafka.wire.varint import encode_uvarint

T = TypeVar("T")

TOPICS_PER_STEP = 2_000
REMEMBERED_FROM = 200

_NO_TAGGED_FIELDS = b"\0"
_INT16, _INT32 = Struct(">h"), Struct(">i")
_NO_USER_DATA = _INT32.pack(-1)
_ASSIGNMENT_EPOCHS_TAG = encode_uvarint(0)


class _PlainTails(dict[int, bytes]):
    """The bytes after a topic's id, by mask."""

    def __missing__(self, mask: int) -> bytes:
        made = self[mask] = _indexes(numbers_of(mask)) + _NO_TAGGED_FIELDS
        return made


class _EpochTails(dict[int, bytes]):
    """As `_PlainTails`, with the same assignment epoch for every partition."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch

    def __missing__(self, mask: int) -> bytes:
        numbers = numbers_of(mask)
        made = self[mask] = _with_epochs(numbers, [self._epoch] * len(numbers))
        return made


def encode_topics(partitions: PartitionSet, make: Callable[[Uuid, list[int]], T]) -> Computation[list[T]]:
    """Return an encoded array of topics. `make` makes a struct of a topic's id and the indexes of its partitions; the
    struct has these two fields and no tagged ones.

    A long set remembers its encoding: a target assignment soon becomes the assignment of a response."""
    if partitions.encoded is None:
        encoded = yield from _encode_topics(partitions)
        if partitions.block_count >= REMEMBERED_FROM:
            partitions.encoded = encoded
    else:
        encoded = partitions.encoded
    return EncodedArray(encoded, lambda: [make(*item) for item in partitions.by_topic()]).as_list()


def _encode_topics(partitions: PartitionSet) -> Computation[bytes]:
    high = partitions.high_topics()
    parts = [_length(partitions)]
    for topic_id, indexes in partitions.in_topics(high).by_topic() if high else ():
        parts.append(topic_id + _indexes(indexes) + _NO_TAGGED_FIELDS)
    tails = _PlainTails()
    masks = iter(partitions.masks())
    while step := list(islice(masks, TOPICS_PER_STEP)):
        parts += _topics(step if not high else [item for item in step if item[0][0] not in high], tails)
        yield
    return b"".join(parts)


def _topics(masks: Collection[tuple[Block, int]], tails: Mapping[int, bytes]) -> list[bytes]:
    """Return the bytes of topics with one block each. Nearly always their number of partitions is the same, and they
    all belong to the member, or there is one: then there is one mask."""
    different = {mask for _, mask in masks}
    if len(different) == 1:
        tail = tails[different.pop()]
        return [tail.join([key[0] for key, _ in masks]), tail]
    return [key[0] + tails[mask] for key, mask in masks]


def encoded_topics(partitions: PartitionSet, make: Callable[[Uuid, list[int]], T]) -> list[T]:
    return finished(encode_topics(partitions, make))


def encoded_with_epochs(
    partitions: PartitionSet, assignment_epochs: Mapping[int, PartitionSet], *, are_all: bool
) -> list[wire.TopicPartitions]:
    """Return an encoded array of topics with the assignment epochs of their partitions, all of which are in
    `assignment_epochs`. `are_all`: there are no other partitions."""
    if not partitions:
        return []
    apart = _mixed_topics(assignment_epochs) | partitions.high_topics()
    parts = [_length(partitions)]
    if apart:
        epochs = _epochs_by_partition(assignment_epochs, apart)
        for topic_id, indexes in partitions.in_topics(apart).by_topic():
            parts.append(topic_id + _with_epochs(indexes, [epochs[topic_id, index] for index in indexes]))
    for epoch, owned in assignment_epochs.items():
        wanted = owned if are_all else owned & partitions
        masks = wanted.masks() if not apart else [item for item in wanted.masks() if item[0][0] not in apart]
        if masks:
            parts += _topics(masks, _EpochTails(epoch))

    def elements() -> list[wire.TopicPartitions]:
        topics = partitions.by_topic()
        epochs = _epochs_by_partition(assignment_epochs, {topic_id for topic_id, _ in topics})
        return [
            wire.TopicPartitions(topic_id, indexes, [epochs[topic_id, index] for index in indexes])
            for topic_id, indexes in topics
        ]

    return EncodedArray(b"".join(parts), elements).as_list()


def _mixed_topics(assignment_epochs: Mapping[int, PartitionSet]) -> set[Uuid]:
    """Return the topics that have several epochs in a block. Nearly none has."""
    mixed: set[Uuid] = set()
    if len(assignment_epochs) > 1:
        seen: set[Block] = set()
        for owned in assignment_epochs.values():
            blocks = owned.blocks()
            mixed.update(topic_id for topic_id, _ in seen & blocks)
            seen |= blocks
    return mixed


def _epochs_by_partition(
    assignment_epochs: Mapping[int, PartitionSet], topics: AbstractSet[Uuid]
) -> dict[Partition, int]:
    return {item: epoch for epoch, owned in assignment_epochs.items() for item in owned.in_topics(topics)}


def encode_named_topics(partitions: PartitionSet, names: Mapping[Uuid, bytes]) -> Computation[list[Any]]:
    """Return an encoded array of topics that have a name after their id. Those that are not in `names` are left out.

    `names`: encoded, by id (`encoded_names_of`)."""
    tails = _PlainTails()
    high = partitions.high_topics()
    topics = [
        topic_id + names[topic_id] + _indexes(indexes) + _NO_TAGGED_FIELDS
        for topic_id, indexes in (partitions.in_topics(high).by_topic() if high else ())
        if topic_id in names
    ]
    masks = iter(partitions.masks())
    while step := list(islice(masks, TOPICS_PER_STEP)):
        topics += [key[0] + names[key[0]] + tails[mask] for key, mask in step if key[0] in names and key[0] not in high]
        yield
    return EncodedArray(encode_uvarint(len(topics) + 1) + b"".join(topics), list).as_list()


def encoded_assignment(partitions: PartitionSet, names: Mapping[Uuid, str]) -> bytes:
    """Return a ConsumerProtocolAssignment, without its version: all versions are the same.

    It has topics by name; those that are not in `names` are left out."""
    tails: dict[int, bytes] = {}
    high = partitions.high_topics()
    topics = [
        _classic_name(names[topic_id]) + _classic_indexes(indexes)
        for topic_id, indexes in (partitions.in_topics(high).by_topic() if high else ())
        if topic_id in names
    ]
    for (topic_id, _), mask in partitions.masks():
        name = names.get(topic_id)
        if name is None or topic_id in high:
            continue
        tail = tails.get(mask)
        if tail is None:
            tail = tails[mask] = _classic_indexes(numbers_of(mask))
        topics.append(_classic_name(name) + tail)
    return b"".join((_INT32.pack(len(topics)), *topics, _NO_USER_DATA))


def _classic_name(name: str) -> bytes:
    encoded = name.encode()
    return _INT16.pack(len(encoded)) + encoded


def _classic_indexes(indexes: list[int]) -> bytes:
    return pack(f">i{len(indexes)}i", len(indexes), *indexes)


def encoded_names_of(names: Mapping[Uuid, str]) -> Computation[dict[Uuid, bytes]]:
    """Return names as strings of a flexible version, by id."""
    made: dict[Uuid, bytes] = {}
    for number, (topic_id, name) in enumerate(names.items(), 1):
        encoded = name.encode()
        made[topic_id] = encode_uvarint(len(encoded) + 1) + encoded
        if not number % TOPICS_PER_STEP:
            yield
    return made


def encode_names(names: list[str]) -> Computation[list[str]]:
    """Return an encoded array of strings."""
    parts = [encode_uvarint(len(names) + 1)]
    for start in range(0, len(names), TOPICS_PER_STEP):
        for name in names[start : start + TOPICS_PER_STEP]:
            encoded = name.encode()
            parts.append(encode_uvarint(len(encoded) + 1) + encoded)
        yield
    return EncodedArray(b"".join(parts), lambda: names).as_list()


def _length(partitions: PartitionSet) -> bytes:
    return encode_uvarint(partitions.topic_count + 1)


def _indexes(indexes: list[int]) -> bytes:
    return encode_uvarint(len(indexes) + 1) + pack(f">{len(indexes)}i", *indexes)


def _with_epochs(indexes: list[int], epochs: list[int]) -> bytes:
    encoded = _indexes(epochs)
    return b"".join(
        (_indexes(indexes), encode_uvarint(1), _ASSIGNMENT_EPOCHS_TAG, encode_uvarint(len(encoded)), encoded)
    )
