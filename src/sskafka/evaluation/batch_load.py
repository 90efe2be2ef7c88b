"""Load that costs brokers much and clients little: prebuilt batches are sent repeatedly, and records are counted from
batch headers.

A Python client spends more time on a record than the broker does, so a grid of clusters measured with such a client
would show the same result everywhere. Brokers see the same load as from any client: Produce and Fetch of batches.
"""

import asyncio
from collections.abc import Mapping

from sskafka.client.cluster import Cluster
from sskafka.client.config import ConsumerConfig, ProducerConfig
from sskafka.client.errors import fetch_error, is_retriable, raise_for
from sskafka.client.fetcher import FetchAnswer, Position, fetch
from sskafka.evaluation.load import LoadSpec, Meter, Report
from sskafka.model.buffers import Buffer
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.records.batch import HEADER_BYTES, read_header, read_offset_and_size
from sskafka.records.builder import BatchBuilder, encoded_size_max
from sskafka.records.compression import Compression
from sskafka.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

IN_FLIGHT = 2
"""Number of requests in flight per partition."""


class BatchProducerLoad:
    """Sends to every partition of the topic, with `acks` and `batch.size`. There are no sequences and no retries."""

    def __init__(self, spec: LoadSpec, cluster: Cluster, config: ProducerConfig) -> None:
        self._spec = spec
        self._cluster = cluster
        self._config = config
        self._partitions: list[TopicPartition] = []
        self._batch, self._records = _build_batch(spec, config, cluster.clock.now_ms())

    async def prepare(self) -> None:
        topic = await _ready_topic(self._cluster, self._spec)
        self._partitions = [TopicPartition(topic, number) for number in self._cluster.view.topics[topic].partitions]
        for partition in self._partitions:
            leader = (await self._cluster.leader_of(partition)).leader
            await self._cluster.connection_to(leader)

    async def run(self, report: Report) -> None:
        loop = asyncio.get_running_loop()
        meter, end_s = Meter(report, loop.time), loop.time() + self._spec.seconds
        async with asyncio.TaskGroup() as lanes:
            for partition in self._partitions * IN_FLIGHT:
                lanes.create_task(self._produce_loop(partition, meter, end_s))
        meter.close_window()

    async def _produce_loop(self, partition: TopicPartition, meter: Meter, end_s: float) -> None:
        loop = asyncio.get_running_loop()
        size_bytes = self._records * self._spec.record_size
        while (sent_s := loop.time()) < end_s:
            try:
                await self._send(partition)
            except Exception as error:
                if not is_retriable(error):
                    raise
                self._cluster.forget(partition.topic)
                await self._cluster.pause(0, self._cluster.deadline_ms())
                continue
            meter.time((loop.time() - sent_s) * 1000, self._records)
            meter.count(self._records, size_bytes)

    async def _send(self, partition: TopicPartition) -> None:
        leader = (await self._cluster.leader_of(partition)).leader
        connection = await self._cluster.connection_to(leader)
        topic_id = self._cluster.view.topics[partition.topic].topic_id
        data = PartitionProduceData(index=partition.partition, records=self._batch)
        request = ProduceRequest(
            acks=self._config.required_acks,
            timeout_ms=self._cluster.config.request_timeout_ms,
            topic_data=[TopicProduceData(name=partition.topic, topic_id=topic_id, partition_data=[data])],
        )
        if self._config.required_acks == 0:
            await connection.send(request)
            await asyncio.sleep(0)
            return
        response = await connection.request(request, ProduceResponse)
        for topic in response.responses:
            for answer in topic.partition_responses:
                raise_for(answer.error_code, f"produce to {partition}")


def _build_batch(spec: LoadSpec, config: ProducerConfig, now_ms: int) -> tuple[bytes, int]:
    """Return a batch as full as `batch.size` allows, and its number of records."""
    builder, value = BatchBuilder(), b"." * spec.record_size
    while True:
        builder.append(None, value, (), now_ms)
        if builder.size_bytes + encoded_size_max(None, value, ()) > config.batch_size:
            return bytes(builder.build(compression=Compression.named(config.compression_type))), len(builder)


class BatchConsumerLoad:
    """Reads its partitions from the start until the time is up, with one fetch in flight per leader."""

    def __init__(self, spec: LoadSpec, cluster: Cluster, config: ConsumerConfig) -> None:
        self._spec = spec
        self._cluster = cluster
        self._config = config
        self._by_leader: dict[int, dict[TopicPartition, Position]] = {}

    async def prepare(self) -> None:
        topic = await _ready_topic(self._cluster, self._spec)
        chosen = self._spec.partitions or tuple(self._cluster.view.topics[topic].partitions)
        leaders = await self._cluster.by_leader(TopicPartition(topic, number) for number in chosen)
        for leader, partitions in leaders.items():
            await self._cluster.connection_to(leader)
            self._by_leader[leader] = {partition: Position(0) for partition in partitions}

    async def run(self, report: Report) -> None:
        loop = asyncio.get_running_loop()
        meter, end_s = Meter(report, loop.time), loop.time() + self._spec.seconds
        async with asyncio.TaskGroup() as readers:
            for leader, positions in self._by_leader.items():
                readers.create_task(self._read(leader, positions, meter, end_s))
        meter.close_window()

    async def _read(
        self, leader: int, positions: Mapping[TopicPartition, Position], meter: Meter, end_s: float
    ) -> None:
        loop = asyncio.get_running_loop()
        while (asked_s := loop.time()) < end_s:
            answers = await fetch(self._cluster, self._config, leader, positions)
            meter.time((loop.time() - asked_s) * 1000)
            for answer in answers:
                records, size_bytes = self._handle_response(answer, positions[answer.partition])
                meter.count(records, size_bytes)

    def _handle_response(self, answer: FetchAnswer, position: Position) -> tuple[int, int]:
        if answer.data.error_code != ErrorCode.NONE:
            raise fetch_error(answer.data.error_code, answer.partition)
        buffer = answer.data.records or b""
        records, position.offset = count_records(buffer, position.offset)
        if position.offset >= answer.data.high_watermark:
            position.offset = 0
        return records, records * self._spec.record_size


def count_records(buffer: Buffer, offset: int) -> tuple[int, int]:
    """Return the number of records in the complete batches of a fetch, and the offset after them."""
    position, end, records = 0, len(buffer), 0
    while end - position >= HEADER_BYTES and position + read_offset_and_size(buffer, position)[1] <= end:
        header = read_header(buffer, position)
        records += header.record_count
        offset = header.next_offset
        position += header.size_bytes
    return records, offset


async def _ready_topic(cluster: Cluster, spec: LoadSpec) -> str:
    """Return the topic's name once every partition has a leader."""

    async def attempt() -> str:
        topic = await cluster.topic(spec.topic)
        for number in topic.partitions:
            await cluster.leader_of(TopicPartition(spec.topic, number))
        return topic.name

    return await cluster.retrying(attempt, topics=[spec.topic])
