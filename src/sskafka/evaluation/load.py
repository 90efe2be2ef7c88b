"""One measured producer or consumer, with or without a rate limit, for a time or a number of records.

It reports its progress in windows; the sum of the windows is the result.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

from sskafka.client.accumulator import Delivery
from sskafka.client.cluster import Cluster
from sskafka.client.consumer import ConsumerEngine
from sskafka.client.offsets import EARLIEST, LATEST, list_offsets
from sskafka.client.producer import ProducerEngine
from sskafka.evaluation.latencies import Latencies
from sskafka.model.ids import TopicPartition

NO_LIMIT = -1
WINDOW_S = 0.5
SAMPLE_EVERY = 7
"""The latency of one record in this many is measured, because measuring costs time."""
PACE_EVERY_S = 0.01


class LoadSpec(NamedTuple):
    """The load of a worker; it ends after the number of records or the time, whichever comes first."""

    kind: str
    bootstrap: str
    topic: str
    records: int = NO_LIMIT
    seconds: float = NO_LIMIT
    record_size: int = 100
    records_per_second: float = NO_LIMIT
    partitions: tuple[int, ...] = ()
    """Consumer: the partitions to read; empty means all."""
    from_latest: bool = False
    repeats: bool = False
    """Consumer: start over at the end of the log, so that there are always records to read."""
    poll_timeout_ms: int = 10_000
    """Consumer: end after this time without records."""
    is_by_batch: bool = False
    """Send and count whole batches, with minimal clients; see batch_load.py."""
    properties: Mapping[str, str] = {}

    def to_json(self) -> dict[str, Any]:
        return self._asdict()

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        return cls(**{**values, "partitions": tuple(values["partitions"])})


class Window(NamedTuple):
    """The work that was done since the previous window."""

    records: int
    size_bytes: int
    seconds: float
    latencies: Latencies

    def to_json(self) -> dict[str, Any]:
        return {**self._asdict(), "latencies": self.latencies.to_json()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        return cls(**{**values, "latencies": Latencies.from_json(values["latencies"])})


Report = Callable[[Window], None]


class Meter:
    """Counts records and reports a window every half second."""

    def __init__(self, report: Report, now_s: Callable[[], float]) -> None:
        self._report = report
        self._now_s = now_s
        self._window_began_s = now_s()
        self._clear()

    def _clear(self) -> None:
        self._records = 0
        self._bytes = 0
        self._latencies = Latencies()

    def count(self, records: int, size_bytes: int) -> None:
        self._records += records
        self._bytes += size_bytes
        if self._now_s() - self._window_began_s >= WINDOW_S:
            self.close_window()

    def time(self, latency_ms: float, records: int = 1) -> None:
        self._latencies.add(latency_ms, records)

    def close_window(self) -> None:
        now_s = self._now_s()
        self._report(Window(self._records, self._bytes, now_s - self._window_began_s, self._latencies))
        self._window_began_s = now_s
        self._clear()


class ProducerLoad:
    def __init__(self, spec: LoadSpec, producer: ProducerEngine) -> None:
        self._spec = spec
        self._producer = producer
        self._value = b"." * spec.record_size

    async def prepare(self) -> None:
        await self._producer.choose_partition(self._spec.topic, None)

    async def run(self, report: Report) -> None:
        spec, loop = self._spec, asyncio.get_running_loop()
        began_s = loop.time()
        meter = Meter(report, loop.time)
        sent = 0
        failed: list[BaseException] = []

        def on_delivery(sent_s: float, future: "asyncio.Future[Delivery]") -> None:
            error = asyncio.CancelledError() if future.cancelled() else future.exception()
            if error is not None:
                failed.append(error)
            meter.time((loop.time() - sent_s) * 1000)

        while not failed and sent != spec.records and not self._is_late(loop.time() - began_s):
            future = await self._producer.send(spec.topic, self._value)
            if sent % SAMPLE_EVERY == 0:
                sent_s = loop.time()
                future.add_done_callback(lambda done, sent_s=sent_s: on_delivery(sent_s, done))  # type: ignore[misc]
                await asyncio.sleep(0)
            sent += 1
            meter.count(1, spec.record_size)
            if spec.records_per_second > 0:
                await self._keep_pace(sent, began_s)
        await self._producer.flush()
        meter.close_window()
        if failed:
            raise failed[0]

    def _is_late(self, elapsed_s: float) -> bool:
        return 0 <= self._spec.seconds <= elapsed_s

    async def _keep_pace(self, sent: int, began_s: float) -> None:
        ahead_s = began_s + sent / self._spec.records_per_second - asyncio.get_running_loop().time()
        if ahead_s >= PACE_EVERY_S:
            await asyncio.sleep(ahead_s)


class ConsumerLoad:
    def __init__(self, spec: LoadSpec, cluster: Cluster, consumer: ConsumerEngine) -> None:
        self._spec = spec
        self._cluster = cluster
        self._consumer = consumer

    async def prepare(self) -> None:
        topic = await self._cluster.retrying(lambda: self._cluster.topic(self._spec.topic), topics=[self._spec.topic])
        numbers = self._spec.partitions or tuple(topic.partitions)
        begin = LATEST if self._spec.from_latest else EARLIEST
        chosen = {TopicPartition(topic.name, number): begin for number in numbers}
        found = await list_offsets(self._cluster, chosen)
        self._consumer.assign({partition: found_offset.offset for partition, found_offset in found.items()})

    async def run(self, report: Report) -> None:
        spec, loop = self._spec, asyncio.get_running_loop()
        began_s = loop.time()
        meter = Meter(report, loop.time)
        read = 0
        while read < spec.records or spec.records == NO_LIMIT:
            left_ms = self._left_ms(loop.time() - began_s)
            asked_s = loop.time()
            records = await self._consumer.poll(left_ms)
            if not records:
                break
            meter.time((loop.time() - asked_s) * 1000)
            read += len(records)
            meter.count(len(records), sum(len(record.value or b"") + len(record.key or b"") for record in records))
            if spec.repeats:
                self._rewind()
        meter.close_window()

    def _left_ms(self, elapsed_s: float) -> int:
        if self._spec.seconds < 0:
            return self._spec.poll_timeout_ms
        return min(self._spec.poll_timeout_ms, max(0, int((self._spec.seconds - elapsed_s) * 1000)))

    def _rewind(self) -> None:
        for partition in self._consumer.assignment:
            if self._consumer.position(partition) >= self._consumer.high_watermark(partition) > 0:
                self._consumer.seek(partition, 0)
