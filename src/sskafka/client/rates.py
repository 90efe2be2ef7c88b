"""Rates of a cluster: what is written to topics, and what groups and clients read, in records and bytes a second.

A rate is the difference of two samples. Topics move by their log end offsets and by the size of their logs, groups by
their committed offsets, clients by the offsets that they fetch (only SSKafka brokers report these).
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sskafka.client.balance.reading import read_directories
from sskafka.client.cluster import Cluster
from sskafka.client.errors import ClientError, UnsupportedApiError
from sskafka.client.groups import committed_offsets, fetched_positions, list_groups
from sskafka.client.offsets import LATEST, list_offsets
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition

Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class RateSample:
    at_ms: float
    ends: Offsets
    sizes: Offsets
    """Bytes of the leaders' logs."""
    committed: Mapping[str, Offsets]
    fetched: Mapping[str, Offsets]
    """Fetch positions by client id."""


class TopicRate(NamedTuple):
    topic: str
    records_per_s: float
    bytes_per_s: float


class ReaderRate(NamedTuple):
    """The rate at which a group or a client reads."""

    name: str
    records_per_s: float
    lag: int
    """Records behind the end of the logs."""


class ClusterRates(NamedTuple):
    topics: list[TopicRate]
    groups: list[ReaderRate]
    clients: list[ReaderRate]


def rates_between(before: RateSample, after: RateSample) -> ClusterRates:
    """Return the rates, highest first. Deleted records and reset offsets do not count as negative rates."""
    seconds = max(0.001, (after.at_ms - before.at_ms) / 1000)
    records = _by_topic(_growth(before.ends, after.ends))
    sizes = _by_topic(_growth(before.sizes, after.sizes))
    topics = [
        TopicRate(topic, records[topic] / seconds, sizes[topic] / seconds)
        for topic in {partition.topic for partition in after.ends}
    ]
    return ClusterRates(
        sorted(topics, key=lambda rate: (-rate.bytes_per_s, -rate.records_per_s, rate.topic)),
        _reader_rates(before.committed, after.committed, after.ends, seconds),
        _reader_rates(before.fetched, after.fetched, after.ends, seconds),
    )


def _growth(before: Offsets, after: Offsets) -> dict[TopicPartition, int]:
    """Return how far each partition moved; one that was not there before has not moved."""
    return {partition: max(0, offset - before.get(partition, offset)) for partition, offset in after.items()}


def _by_topic(numbers: Mapping[TopicPartition, int]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for partition, number in numbers.items():
        sums[partition.topic] += number
    return sums


def _reader_rates(
    before: Mapping[str, Offsets], after: Mapping[str, Offsets], ends: Offsets, seconds: float
) -> list[ReaderRate]:
    found = []
    for name, offsets in after.items():
        read = sum(_growth(before.get(name, {}), offsets).values())
        lag = sum(max(0, ends[partition] - offset) for partition, offset in offsets.items() if partition in ends)
        found.append(ReaderRate(name, read / seconds, lag))
    return sorted(found, key=lambda rate: (-rate.records_per_s, -rate.lag, rate.name))


async def read_rate_sample(cluster: Cluster) -> RateSample:
    view = await cluster.retrying(lambda: cluster.refresh(None))
    leaders = {
        TopicPartition(topic.name, number): partition.leader
        for topic in view.topics.values()
        for number, partition in topic.partitions.items()
        if partition.leader in view.brokers
    }
    ends, directories, committed, fetched = await asyncio.gather(
        list_offsets(cluster, dict.fromkeys(leaders, LATEST)),
        read_directories(cluster, view.brokers),
        _committed(cluster),
        _fetched(cluster),
    )
    sizes = {
        partition: directories[leader].replica_bytes.get(partition, 0)
        for partition, leader in leaders.items()
        if leader in directories
    }
    at_ms = cluster.clock.monotonic_ms()
    return RateSample(at_ms, {partition: end.offset for partition, end in ends.items()}, sizes, committed, fetched)


async def _committed(cluster: Cluster) -> dict[str, Offsets]:
    """Return the committed offsets of all groups. A group whose coordinator moves is left out."""
    groups = [group.group_id for group in await list_groups(cluster)]
    found = await asyncio.gather(*(committed_offsets(cluster, group) for group in groups), return_exceptions=True)
    return dict(_without_failures(groups, found))


def _without_failures(groups: Iterable[str], found: Iterable[object]) -> Iterable[tuple[str, Offsets]]:
    for group, answer in zip(groups, found, strict=True):
        if isinstance(answer, dict):
            yield group, {partition: committed.offset for partition, committed in answer.items()}
        elif isinstance(answer, BaseException) and not isinstance(answer, ClientError | KafkaError):
            raise answer


async def _fetched(cluster: Cluster) -> dict[str, Offsets]:
    """Return how far each client has fetched; nothing if the brokers do not report that."""
    found: defaultdict[str, dict[TopicPartition, int]] = defaultdict(dict)
    try:
        positions = await fetched_positions(cluster, None)
    except UnsupportedApiError:
        return {}
    for reader in positions:
        found[reader.client_id][TopicPartition(reader.topic, reader.partition)] = reader.fetch_offset
    return dict(found)
