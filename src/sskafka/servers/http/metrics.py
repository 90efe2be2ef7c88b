"""All metrics of a node, as its HTTP process collects them: most from the broker over the private socket.

This process computes what the broker need not: consumer lag, the space of log directories, rates of counters.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping

from sskafka.client.cluster import Cluster
from sskafka.client.errors import ClientError, raise_for
from sskafka.client.groups import Committed, committed_offsets
from sskafka.client.offsets import LATEST, list_offsets
from sskafka.model.counter_rate import CounterRate
from sskafka.model.counters import AcceptorCounters, Labels, Sample
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.runtime.clock import Clock
from sskafka.servers.local.link import LocalLink
from sskafka.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

TIMEOUT_S = 2.0
GROUPS_MAX = 500
OFFSETS_TOPIC = "__consumer_offsets"
_GROUP = "kafka_consumergroup_"
_CONNECTIONS = "kafka_server_socket_server_metrics_connection_"
RATES = {f"{_CONNECTIONS}{what}_total": f"{_CONNECTIONS}{what}_rate" for what in ("creation", "close")}
"""Counters whose rate is a metric of its own."""


class NodeMetrics:
    def __init__(
        self, link: LocalLink, acceptor_counters: AcceptorCounters, cluster: Cluster | None, clock: Clock
    ) -> None:
        """`cluster`: None if this process cannot ask the broker for groups."""
        self._link = link
        self._acceptor_counters = acceptor_counters
        self._cluster = cluster
        self._clock = clock
        self._rates: dict[tuple[str, Labels], CounterRate] = {}

    async def collect(self) -> list[Sample]:
        parts = await self._link.ask_for_parts("samples")
        samples = [Sample(name, _tuples(labels), value) for part in parts for name, labels, value in part]
        samples += self._acceptor_counters.samples()
        samples += list(self._rate_samples(samples))
        samples += await _space_samples(samples)
        if self._cluster is not None:
            samples += await group_lag_samples(self._cluster)
        return samples

    def _rate_samples(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        now_ms = self._clock.monotonic_ms()
        for name, labels, count in samples:
            if name in RATES:
                rate = self._rates.setdefault((name, labels), CounterRate(now_ms, count))
                yield Sample(RATES[name], labels, rate.per_second(count, now_ms))


def _tuples(labels: Iterable[Iterable[str]]) -> Labels:
    return tuple((name, value) for name, value in labels)


async def _space_samples(samples: Iterable[Sample]) -> list[Sample]:
    """Return size and free space of the log directories, asked for in a thread: a network disk may not answer."""
    directories = [labels for name, labels, _ in samples if name == "kafka_log_logmanager_logdirectoryoffline"]
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await asyncio.to_thread(lambda: [one for labels in directories for one in _space(labels)])
    except TimeoutError:
        return []


def _space(labels: Labels) -> Iterator[Sample]:
    try:
        found = os.statvfs(dict(labels)["logdirectory"])
    except OSError:
        return  # the directory has failed, which the broker reports
    yield Sample("sskafka_log_directory_size_bytes", labels, found.f_blocks * found.f_frsize)
    yield Sample("sskafka_log_directory_available_bytes", labels, found.f_bavail * found.f_frsize)


async def group_lag_samples(cluster: Cluster) -> list[Sample]:
    """Return consumer lag of the groups that this broker coordinates, read over the Kafka protocol.

    Kafka's own metrics leave lag to exporters; names and labels are those of the most common exporter. Values that are
    not available in time are left out: metrics must not wait for a broker that is down."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await _lag_samples(cluster)
    except (TimeoutError, KafkaError, ClientError):
        return []


async def _lag_samples(cluster: Cluster) -> list[Sample]:
    committed = {group: await committed_offsets(cluster, group) for group in await _own_groups(cluster)}
    known = {partition for offsets in committed.values() for partition in offsets}
    ends = await _end_offsets(cluster, known)
    return [sample for group, offsets in committed.items() for sample in _of_group(group, offsets, ends)]


async def _own_groups(cluster: Cluster) -> list[str]:
    """Return the groups of this broker. Without __consumer_offsets there are none, and the broker is not asked."""
    if OFFSETS_TOPIC not in (await cluster.refresh([OFFSETS_TOPIC])).topics:
        return []
    connection = await cluster.any_connection()
    response = await connection.request(ListGroupsRequest(), ListGroupsResponse)
    raise_for(response.error_code)
    return sorted(group.group_id for group in response.groups)[:GROUPS_MAX]


async def _end_offsets(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the end offsets of the partitions that exist and have a leader."""
    view = await cluster.refresh({partition.topic for partition in partitions})
    states = {partition: view.partition(partition) for partition in partitions}
    led = [partition for partition, state in states.items() if state is not None and state.leader >= 0]
    found = await list_offsets(cluster, dict.fromkeys(led, LATEST))
    return {partition: answer.offset for partition, answer in found.items()}


def _of_group(
    group: str, offsets: Mapping[TopicPartition, Committed], ends: Mapping[TopicPartition, int]
) -> Iterable[Sample]:
    for partition, committed in sorted(offsets.items()):
        labels = (("consumergroup", group), ("topic", partition.topic), ("partition", str(partition.partition)))
        yield Sample(_GROUP + "current_offset", labels, committed.offset)
        if partition in ends:
            yield Sample(_GROUP + "lag", labels, max(ends[partition] - committed.offset, 0))
