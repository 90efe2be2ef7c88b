"""A page of records over several partitions, newest or oldest first.

Each partition is a lane. A lane reads a window of offsets in its direction, and its records wait until they are the
next of all lanes by timestamp. So a page of a topic with many partitions reads little more than it shows:

    partition 0   [log start ........ | window | ] <- position      newest first: windows go down
    partition 1   [log start .... | window | ] <- position

When a window has no records (compaction has removed them, or they are markers of transactions), the next window is
twice as large. A page ends early when it has read for long or much; its cursor continues it.
"""

import dataclasses
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from sskafka.client.cluster import Cluster
from sskafka.client.config import ConsumerConfig
from sskafka.client.consumer import ConsumerEngine
from sskafka.client.fetched import ConsumedRecord
from sskafka.client.offset_range import Span
from sskafka.model.ids import TopicPartition

ROUNDS_MAX: Final = 64
READ_BYTES_MAX: Final = 32 * 1024 * 1024
READ_TIMEOUT_MS: Final = 10_000
WINDOW_MIN, WINDOW_MAX = 8, 1_000_000
RECORD_BYTES_GUESS = 1024
FETCH_BYTES_MIN, FETCH_BYTES_MAX = 16 * 1024, 1024 * 1024
_POLL_MS = 50


class RecordPage(NamedTuple):
    records: list[ConsumedRecord]
    positions: dict[TopicPartition, int]
    """Where the next page continues: the first offset that it may show (oldest first), or the one after (newest)."""
    is_last: bool


@dataclasses.dataclass(slots=True)
class _Lane:
    partition: TopicPartition
    bounds: Span
    position: int
    """Everything before it (oldest first) or from it on (newest first) is in `waiting`, or shown."""
    window: int
    newest_first: bool
    waiting: deque[ConsumedRecord] = dataclasses.field(default_factory=deque)

    @property
    def end(self) -> int:
        assert self.bounds.stop is not None
        return self.bounds.stop

    @property
    def is_read(self) -> bool:
        return self.position <= self.bounds.start if self.newest_first else self.position >= self.end

    def next_window(self) -> Span:
        if self.newest_first:
            return Span(max(self.bounds.start, self.position - self.window), self.position)
        return Span(self.position, min(self.end, self.position + self.window))

    def take(self, span: Span, records: list[ConsumedRecord]) -> None:
        assert span.stop is not None
        self.waiting.extend(reversed(records) if self.newest_first else records)
        self.position = span.start if self.newest_first else span.stop
        self.window = min(self.window * 2, WINDOW_MAX)

    def continues_at(self) -> int:
        if not self.waiting:
            return self.position
        return self.waiting[0].offset + 1 if self.newest_first else self.waiting[0].offset


async def read_page(
    cluster: Cluster,
    bounds: Mapping[TopicPartition, Span],
    positions: Mapping[TopicPartition, int],
    limit: int,
    *,
    newest_first: bool,
    isolation_level: str,
) -> RecordPage:
    """Read up to `limit` records from the positions on, in both cases within the bounds of each partition."""
    window = max(WINDOW_MIN, -(-limit // max(1, len(bounds))) * 2)
    lanes = [
        _Lane(partition, span, min(max(positions[partition], span.start), span.stop or 0), window, newest_first)
        for partition, span in bounds.items()
    ]
    page: list[ConsumedRecord] = []
    budget = _Budget(cluster)
    while len(page) < limit:
        empty = [lane for lane in lanes if not lane.waiting and not lane.is_read]
        if empty:
            if budget.is_spent:
                break
            await _fill(cluster, empty, isolation_level, budget)
            continue
        full = [lane for lane in lanes if lane.waiting]
        if not full:
            break
        choose = max if newest_first else min
        page.append(choose(full, key=lambda lane: lane.waiting[0].timestamp).waiting.popleft())
    is_last = all(lane.is_read and not lane.waiting for lane in lanes)
    return RecordPage(page, {lane.partition: lane.continues_at() for lane in lanes}, is_last)


class _Budget:
    """How much one page may read."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.deadline_ms = cluster.deadline_ms(READ_TIMEOUT_MS)
        self.rounds = 0
        self.size_bytes = 0

    @property
    def is_spent(self) -> bool:
        is_late = self._cluster.clock.monotonic_ms() >= self.deadline_ms
        return is_late or self.rounds >= ROUNDS_MAX or self.size_bytes >= READ_BYTES_MAX


async def _fill(cluster: Cluster, lanes: Iterable[_Lane], isolation_level: str, budget: _Budget) -> None:
    """Read the next window of each lane. A lane that cannot be read in time stays as it is."""
    budget.rounds += 1
    windows = {lane.partition: lane.next_window() for lane in lanes}
    found = await read_spans(cluster, windows, isolation_level, budget.deadline_ms)
    for lane in lanes:
        if lane.partition in found:
            lane.take(windows[lane.partition], found[lane.partition])
            budget.size_bytes += sum(size_of(record) for record in found[lane.partition])


def size_of(record: ConsumedRecord) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


async def read_spans(
    cluster: Cluster, spans: Mapping[TopicPartition, Span], isolation_level: str, deadline_ms: float
) -> dict[TopicPartition, list[ConsumedRecord]]:
    """Return the records of each span that could be read whole before the deadline."""
    largest = max((span.stop or 0) - span.start for span in spans.values())
    config = ConsumerConfig(
        isolation_level=isolation_level,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=_POLL_MS,
        max_partition_fetch_bytes=min(max(largest * RECORD_BYTES_GUESS, FETCH_BYTES_MIN), FETCH_BYTES_MAX),
    )
    read: dict[TopicPartition, list[ConsumedRecord]] = {partition: [] for partition in spans}
    async with ConsumerEngine(cluster, config) as consumer:
        consumer.assign({partition: span.start for partition, span in spans.items()})
        while consumer.assignment and cluster.clock.monotonic_ms() < deadline_ms:
            for record in await consumer.poll(_POLL_MS):
                partition = TopicPartition(record.topic, record.partition)
                if record.offset < (spans[partition].stop or 0):
                    read[partition].append(record)
            for partition in consumer.assignment:
                if consumer.position(partition) >= (spans[partition].stop or 0):
                    consumer.unassign(partition)
        return {partition: records for partition, records in read.items() if partition not in consumer.assignment}
