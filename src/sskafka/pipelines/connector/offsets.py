"""Offsets of partitions as Spark stores them, and the ranges that tasks read. Pure: no cluster, no Spark.

    {"orders": {"0": 17, "1": 23}}         the form of Spark's own Kafka source, in checkpoints and in options
    "#topic-ids": {"orders": "vPz..."}     in checkpoints, in addition: offsets of a topic that was deleted and created
                                           again have no meaning in the new one
    "#first": {"orders": {"0": 9}}         in the end of a query's first batch: where that batch begins. Spark stores
                                           only the end, and a restart would find another `latest`

No topic can have a name with `#`.

Spark compares offsets as text, so topics and partitions are always written in order. In options, -2 means the earliest
offset and -1 the latest.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.errors import OptionError

Offsets: TypeAlias = dict[TopicPartition, int]
OffsetsJson: TypeAlias = dict[str, dict[str, Any]]
TopicIds: TypeAlias = dict[str, str]

ADDITION = "#"
"""First character of the names of what offsets contain in addition."""
TOPIC_IDS = "#topic-ids"
FIRST = "#first"
LATEST = -1
EARLIEST = -2


class OffsetRange(NamedTuple):
    """The offsets from `start` up to, but not including, `end` of one partition."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def to_json(offsets: Mapping[TopicPartition, int], ids: Mapping[str, str] | None = None) -> OffsetsJson:
    topics: OffsetsJson = {}
    for partition in sorted(offsets):
        topics.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    known = {topic: ids[topic] for topic in topics if topic in ids} if ids else {}
    return {TOPIC_IDS: known, **topics} if known else topics


def ids_in(topics: Mapping[str, Mapping[str, Any]]) -> TopicIds:
    """Return the ids of the topics of the offsets; brokers and earlier versions may have none."""
    return dict(topics.get(TOPIC_IDS, {}))


def beginning_at(start: Mapping[str, Mapping[str, Any]], end: OffsetsJson) -> OffsetsJson:
    """Return the end of a query's first batch, in which the start of the batch is stored, too."""
    return {FIRST: without_additions(start), **end}


def first_start(end: Mapping[str, Mapping[str, Any]]) -> OffsetsJson | None:
    """Return where the first batch of a query begins, if this is the end of one."""
    if FIRST not in end:
        return None
    ids = ids_in(end)
    return {TOPIC_IDS: ids, **end[FIRST]} if ids else dict(end[FIRST])


def without_additions(topics: Mapping[str, Mapping[str, Any]]) -> OffsetsJson:
    return {topic: dict(of) for topic, of in topics.items() if not topic.startswith(ADDITION)}


def is_same_place(one: Mapping[str, Mapping[str, Any]], other: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether nothing is between two offsets."""
    return from_json(one) == from_json(other) and ids_in(one) == ids_in(other)


def of_other_topics(offsets: Mapping[TopicPartition, int], ids: Mapping[str, str], now: Mapping[str, str]) -> Offsets:
    """Return the offsets whose topic has another id now, because it was deleted and created again."""
    return {
        partition: offset
        for partition, offset in offsets.items()
        if partition.topic in now and ids.get(partition.topic, now[partition.topic]) != now[partition.topic]
    }


def from_json(topics: Mapping[str, Mapping[str, Any]]) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in topics.items()
        if not topic.startswith(ADDITION)
        for partition, offset in partitions.items()
    }


def parse_offsets(option: str, text: str) -> Offsets:
    """Parse the JSON of an option with offsets or timestamps; raises OptionError."""
    example = '{"topic": {"0": 23, "1": -2}}'
    parsed = _parse_json(option, text, example)
    if isinstance(parsed, dict):
        for name in (TOPIC_IDS, FIRST):  # the offsets were copied from a checkpoint or a report
            parsed.pop(name, None)
    if not isinstance(parsed, dict) or not all(isinstance(partitions, dict) for partitions in parsed.values()):
        raise OptionError(option, f"{text!r} is not of the form {example}")
    try:
        return from_json({topic: {key: _whole(value) for key, value in of.items()} for topic, of in parsed.items()})
    except (TypeError, ValueError):
        raise OptionError(option, f"{text!r}: partitions and offsets must be whole numbers, as in {example}") from None


def parse_assignment(option: str, text: str) -> list[TopicPartition]:
    """Parse the JSON of `assign`: partitions by topic."""
    example = '{"topic": [0, 1]}'
    parsed = _parse_json(option, text, example)
    if not isinstance(parsed, dict) or not all(isinstance(partitions, list) for partitions in parsed.values()):
        raise OptionError(option, f"{text!r} is not of the form {example}")
    try:
        return sorted(TopicPartition(topic, _whole(number)) for topic, numbers in parsed.items() for number in numbers)
    except (TypeError, ValueError):
        raise OptionError(option, f"{text!r}: partitions must be whole numbers, as in {example}") from None


def _parse_json(option: str, text: str, example: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise OptionError(option, f"{text!r} is not JSON ({error}); it should look like {example}") from None


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(value)
    return value


def limited(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], limit: int) -> Offsets:
    """Return `end`, reduced so that about `limit` offsets are between: each partition is reduced in proportion.

    Every partition that has records left advances by at least one, so that large partitions do not starve it. If the
    end is before the start, the log has become shorter; the end is kept, because this is reported before anything is
    read.
    """
    waiting = {partition: max(0, offset - start.get(partition, 0)) for partition, offset in end.items()}
    total = sum(waiting.values())
    if total <= limit:
        return dict(end)
    shares = {partition: count * limit // total for partition, count in waiting.items()}
    return {
        partition: start.get(partition, 0) + min(waiting[partition], max(share, 1))
        if waiting[partition]
        else end[partition]
        for partition, share in shares.items()
    }


def ranges_between(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> list[OffsetRange]:
    """Return the ranges between two offsets for each partition, without empty ones."""
    return [
        OffsetRange(partition, start[partition], end[partition])
        for partition in sorted(end)
        if end[partition] > start[partition]
    ]


def lost_ranges(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
) -> list[OffsetRange]:
    """Return the ranges that do not exist completely: the log starts after their start, or ends before their end."""
    wanted = [OffsetRange(one, start.get(one, earliest[one]), end[one]) for one in sorted(end)]
    return [part for part in wanted if _is_lost(part, earliest[part.partition], latest[part.partition])]


def _is_lost(part: OffsetRange, earliest: int, latest: int) -> bool:
    return part.start > part.end or part.start < min(earliest, part.end) or max(latest, part.start) < part.end


def split_ranges(ranges: Sequence[OffsetRange], parts_min: int) -> list[OffsetRange]:
    """Return at least about `parts_min` ranges of similar size by splitting large ones."""
    total = sum(part.size for part in ranges)
    if len(ranges) >= parts_min or not total:
        return list(ranges)
    return [piece for whole in ranges for piece in _pieces(whole, max(1, round(whole.size * parts_min / total)))]


def cut_ranges(ranges: Sequence[OffsetRange], records_max: int) -> list[OffsetRange]:
    """Return ranges of at most `records_max` offsets by splitting larger ones into equal parts."""
    return [piece for whole in ranges for piece in _pieces(whole, -(-whole.size // records_max))]


def _pieces(whole: OffsetRange, count: int) -> list[OffsetRange]:
    bounds = [whole.start + whole.size * part // count for part in range(count + 1)]
    return [OffsetRange(whole.partition, first, last) for first, last in pairwise(bounds) if last > first]


def group_ranges(ranges: Iterable[OffsetRange], records_min: int) -> list[list[OffsetRange]]:
    """Combine small ranges until a group has `records_min` offsets: a task costs much more than a fetch."""
    groups: list[list[OffsetRange]] = []
    room = 0
    for part in sorted(ranges, key=lambda part: (-part.size, part.partition)):
        if room >= part.size and groups:
            groups[-1].append(part)
            room -= part.size
        else:
            groups.append([part])
            room = records_min - part.size
    return groups
