"""The operations of ADR-0011, for the binary protocol and for REST: produce, consume, flush.

A key selects the partition by `partitioner.hash`. A record without a key goes to the partition with the fewest records,
which the leader of the topic's partition 0 decides. Requests are forwarded to the leader of the partition. Producing to
a topic that does not exist creates it. While a partition has no leader the service waits a little. It retries a record
that was certainly not stored, and never one that may have been.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Executor
from itertools import islice
from typing import Any, TypeVar

from sskafka.client.fetched import CompletedFetch, ConsumedRecord
from sskafka.metadata.image import ClusterImage
from sskafka.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import INTERNAL_TOPICS, METADATA_TOPIC, TopicPartition, topic_name_problem
from sskafka.model.settings import Settings
from sskafka.records.builder import NewRecord
from sskafka.records.partitioner import KEY_HASHES, partition_for_key
from sskafka.runtime.clock import Clock
from sskafka.servers.adr.caller import AdrCaller
from sskafka.servers.adr.errors import (
    AdrServiceError,
    InvalidRequestError,
    NotAllowedError,
    NotAppliedError,
    NotFoundError,
    OutcomeUnknownError,
)
from sskafka.servers.adr.least_loaded import Append, LeastLoaded, Spawn
from sskafka.servers.adr.local_partitions import Bounds, LocalPartitions
from sskafka.servers.adr.remote_partitions import RemotePartitions
from sskafka.servers.kafka.authorization import Authorizer
from sskafka.servers.kafka.controller import ANSWER_TIMEOUT_MS, Controller
from sskafka.wire.adr import Consume, Consumed, Produce, Produced, StoredMessage
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

T = TypeVar("T")

RETRY_TIMEOUT_MS = 10_000
RETRY_S = 0.02
COMMIT_TIMEOUT_S = 30.0
ANSWER_BYTES_MAX = 8 * 1024 * 1024
"""An answer to CONSUME ends with the message that reaches this size."""
USE_DEFAULT = -1


class AdrService:
    def __init__(
        self,
        settings: Settings,
        image: Callable[[], ClusterImage],
        controller: Controller,
        local: LocalPartitions,
        remote: RemotePartitions,
        authorizer: Authorizer,
        clock: Clock,
        executor: Executor,
        spawn: Spawn,
    ) -> None:
        self._node_id = settings["node.id"]
        self._creates_topics = settings["auto.create.topics.enable"]
        self._key_hash = KEY_HASHES[settings["partitioner.hash"]]
        self._image = image
        self._controller = controller
        self._local = local
        self._remote = remote
        self._authorizer = authorizer
        self._clock = clock
        self._executor = executor
        self._least_loaded = LeastLoaded(self.record_counts, self._append_unkeyed, spawn)

    async def close(self) -> None:
        await self._remote.close()

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions, 0 if the topic does not exist."""
        found = self._image().topics_by_name.get(topic)
        return len(found.partitions) if found is not None else 0

    # -- produce

    async def produce(self, request: Produce, caller: AdrCaller) -> Produced:
        topic = request.topic
        if problem := topic_name_problem(topic):
            raise InvalidRequestError(problem)
        if topic in INTERNAL_TOPICS or topic == METADATA_TOPIC:
            raise InvalidRequestError(f"only coordinators may write to {topic!r}")
        self._check_may(caller, AclOperation.WRITE, ResourceType.TOPIC, topic)
        if not self.partition_count(topic):
            if not self._authorizer.would_allow(caller, AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
                self._check_may(caller, AclOperation.CREATE, ResourceType.TOPIC, topic)
            await self._create(topic)
        return await self._patiently(lambda: self._try_to_produce(request))

    async def _try_to_produce(self, request: Produce) -> Produced:
        count = self.partition_count(request.topic)
        if not count:
            raise NotAppliedError(f"there is no topic {request.topic!r}")
        if request.key is None:
            return await self._place(request.topic, request.data)
        chosen = partition_for_key(request.key, count, self._key_hash)
        append = self._append(TopicPartition(request.topic, chosen), NewRecord(request.key, request.data))
        return Produced(await _committed(append.offset), chosen)

    async def _place(self, topic: str, data: bytes) -> Produced:
        decider = self._leader_of(TopicPartition(topic, 0))
        if decider == self._node_id:
            return await self.place_here(topic, data)
        return await self._remote.place(decider, topic, data)

    async def place_here(self, topic: str, data: bytes) -> Produced:
        """Place a record without a key. Raise NotAppliedError unless this broker decides for the topic."""
        if self._local.find(TopicPartition(topic, 0)) is None:
            raise NotAppliedError(f"broker {self._node_id} does not lead {topic}-0")
        return await _committed(self._least_loaded.place(topic, data))

    def _append_unkeyed(self, topic: str, index: int, data: bytes) -> Append:
        return self._append(TopicPartition(topic, index), NewRecord(None, data))

    def _append(self, topic_partition: TopicPartition, record: NewRecord) -> Append:
        """Append here at once, or at the broker that leads the partition."""
        partition = self._local.find(topic_partition)
        if partition is not None:
            return Append(self._local.append(partition, record), is_written=True)
        if self._leader_of(topic_partition) == self._node_id:
            raise NotAppliedError(f"{topic_partition} is not open yet")
        return Append(asyncio.ensure_future(self._remote.append(topic_partition, record)), is_written=False)

    async def record_counts(self, topic: str) -> dict[int, int]:
        """Return the number of data records by partition. Partitions whose leaders do not answer are left out."""
        found = self._image().topics_by_name.get(topic)
        if found is None:
            raise NotAppliedError(f"there is no topic {topic!r}")
        by_leader: dict[int, list[int]] = {}
        for index, state in found.partitions.items():
            by_leader.setdefault(state.leader, []).append(index)
        own = self._local.record_counts(topic, by_leader.pop(self._node_id, ()))
        others = [
            self._remote.record_counts(leader, topic, indexes) for leader, indexes in by_leader.items() if leader >= 0
        ]
        counts: dict[int, int] = {}
        for answer in await asyncio.gather(own, *others) if others else [await own]:
            counts |= answer
        return counts

    async def own_record_counts(self, topic: str, indexes: Iterable[int]) -> dict[int, int]:
        """Return the counts of those partitions that this broker leads."""
        return await self._local.record_counts(topic, indexes)

    async def _create(self, topic: str) -> None:
        if not self._creates_topics:
            raise NotFoundError(f"there is no topic {topic!r}, and auto.create.topics.enable is false")
        wanted = CreatableTopic(topic, num_partitions=USE_DEFAULT, replication_factor=USE_DEFAULT)
        response: Any = await self._controller.ask(CreateTopicsRequest(topics=[wanted]), ANSWER_TIMEOUT_MS)
        for outcome in response.topics:
            if outcome.error_code not in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
                raise AdrServiceError(outcome.error_message or f"topic {topic!r}: {ErrorCode(outcome.error_code).name}")

    # -- consume

    async def consume(self, request: Consume, caller: AdrCaller) -> Consumed:
        topic, index, offset, batch_size = request
        self._check_may(caller, AclOperation.READ, ResourceType.TOPIC, topic)
        if offset < 0:
            raise InvalidRequestError(f"the offset {offset} is negative")
        if batch_size < 0:
            raise InvalidRequestError(f"the batch size {batch_size} is negative")
        count = self.partition_count(topic)
        if not count:
            raise NotFoundError(f"there is no topic {topic!r}")
        if not 0 <= index < count:
            raise NotFoundError(f"topic {topic!r} has no partition {index}: it has {count}, counted from 0")
        return await self._patiently(lambda: self._read(TopicPartition(topic, index), offset, batch_size))

    async def fullest_partition(self, topic: str, offset: int, caller: AdrCaller) -> int:
        """Return the partition with the most records from `offset` on, the lowest of several."""
        self._check_may(caller, AclOperation.READ, ResourceType.TOPIC, topic)
        count = self.partition_count(topic)
        if not count:
            raise NotFoundError(f"there is no topic {topic!r}")
        ends = await self._patiently(lambda: self._bounds(topic, count))
        return min(ends, key=lambda index: (-max(0, ends[index][1] - max(offset, ends[index][0])), index))

    async def _bounds(self, topic: str, count: int) -> dict[int, Bounds]:
        partitions = [TopicPartition(topic, index) for index in range(count)]
        own = {item.partition: self._local.bounds(item) for item in partitions}
        found = {index: bounds for index, bounds in own.items() if bounds is not None}
        elsewhere = [item for item in partitions if item.partition not in found]
        return found | (await self._remote.bounds(elsewhere) if elsewhere else {})

    async def _read(self, topic_partition: TopicPartition, offset: int, batch_size: int) -> Consumed:
        messages: list[StoredMessage] = []
        position, size_bytes = offset, 0
        while len(messages) < batch_size and size_bytes < ANSWER_BYTES_MAX:
            fetched = await self._fetch(topic_partition, position)
            if fetched is None:
                break
            for record in await self._take(fetched, batch_size - len(messages)):
                messages.append(StoredMessage(record.offset, record.value or b""))
                size_bytes += len(messages[-1].data)
            if fetched.next_offset <= position:
                break
            position = fetched.next_offset
        return Consumed(position if messages else offset, messages)

    async def _fetch(self, topic_partition: TopicPartition, offset: int) -> CompletedFetch | None:
        partition = self._local.find(topic_partition)
        if partition is not None:
            return await self._local.fetch(partition, offset)
        if self._leader_of(topic_partition) == self._node_id:
            raise NotAppliedError(f"{topic_partition} is not open yet")
        return await self._remote.fetch(topic_partition, offset)

    async def _take(self, fetched: CompletedFetch, count: int) -> list[ConsumedRecord]:
        """Decode in a thread: many records would block the event loop for too long."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, _taken, fetched, count)

    # -- flush

    async def flush(self, caller: AdrCaller) -> None:
        """Flush on every broker, because produced records may be on any of them."""
        self._check_may(caller, AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
        others = [broker.id for broker in self._image().active_brokers() if broker.id != self._node_id]
        await asyncio.gather(self.flush_here(), *(self._remote.flush(broker) for broker in others))

    async def flush_here(self) -> None:
        await self._local.flush()

    # -- shared parts

    def _check_may(self, caller: AdrCaller, operation: AclOperation, resource_type: ResourceType, name: str) -> None:
        if not self._authorizer.allows(caller, operation, resource_type, name):
            raise NotAllowedError(f"{caller.principal} may not {operation.name} {resource_type.name.lower()} {name!r}")

    def _leader_of(self, topic_partition: TopicPartition) -> int:
        state = self._image().partition(*topic_partition)
        if state is None or state.leader < 0:
            raise NotAppliedError(f"{topic_partition} has no leader now")
        return state.leader

    async def _patiently(self, attempt: Callable[[], Awaitable[T]]) -> T:
        deadline_ms = self._clock.monotonic_ms() + RETRY_TIMEOUT_MS
        while True:
            try:
                return await attempt()
            except NotAppliedError:
                if self._clock.monotonic_ms() >= deadline_ms:
                    raise
            await asyncio.sleep(RETRY_S)


def _taken(fetched: CompletedFetch, count: int) -> list[ConsumedRecord]:
    """Return up to `count` messages, within the size limit of an answer."""
    records: list[ConsumedRecord] = []
    size_bytes = 0
    for record in islice(fetched, count):
        records.append(record)
        size_bytes += len(record.value or b"")
        if size_bytes >= ANSWER_BYTES_MAX:
            break
    return records


async def _committed(work: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(COMMIT_TIMEOUT_S):
            return await work
    except TimeoutError:
        text = (
            f"the in-sync replicas did not have the record within {COMMIT_TIMEOUT_S:.0f} s; it may still be committed"
        )
        raise OutcomeUnknownError(text) from None
