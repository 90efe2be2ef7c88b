"""Brokers of a simulated cluster with everything real that transactions go through, on a model of replication.

Real: transaction and group coordinators on their shards, verifier, marker sender and writer, the handlers of Produce
(its transactional part), AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn, InitProducerId and
WriteTxnMarkers, logs with their producer state, metadata images.

Modelled: the network, replication (a leader's append is committed a little later, or lost with its leader) and the
controller. A broker that was deposed goes on as leader until its metadata tells it; what it appends is never committed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from types import SimpleNamespace
from typing import Any, TypeVar

from coordinator_lab import LoopWork
from logs import reopen
from simulated_disk import SimulatedDisk
from virtual_loop import LoopClock

from sskafka.client.broker_link import BrokerLinks
from sskafka.coordination.context import CoordinatorEnvironment
from sskafka.coordination.group_coordinator import GroupCoordinator
from sskafka.coordination.internal_topics import partition_of
from sskafka.coordination.loading import LoadCounters, LoadingTurns
from sskafka.coordination.transaction_coordinator import TransactionCoordinator
from sskafka.coordination.transaction_markers import MarkerSender, MarkerWriter
from sskafka.coordination.transaction_verifier import TransactionVerifier
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.features import TRANSACTION_VERSION
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import (
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.model.settings import Settings
from sskafka.records.batch import iter_headers
from sskafka.replication.errors import NotEnoughReplicasError, NotLeaderOrFollowerError, UnknownTopicOrPartitionError
from sskafka.runtime.delayed_operation import OffsetWaiters
from sskafka.runtime.timer_wheel import TimerWheel
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.servers.kafka.handlers.transaction_markers import TransactionMarkerHandler
from sskafka.servers.kafka.handlers.transaction_offsets import TransactionOffsetHandler
from sskafka.servers.kafka.handlers.transactional_produce import (
    Refusals,
    RetryPauses,
    TransactionalProduce,
    Waiting,
)
from sskafka.servers.kafka.handlers.transactions import TransactionHandlers
from sskafka.storage.log import AppendInfo, Log
from sskafka.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from sskafka.wire.produce import ProduceRequestView

T = TypeVar("T")

STATE, OFFSETS, ORDERS = "__transaction_state", "__consumer_offsets", "orders"
TOPIC_IDS = {name: name.encode().ljust(16, b"-")[:16] for name in (STATE, OFFSETS, ORDERS)}
PARTITIONS = {STATE: 2, OFFSETS: 2, ORDERS: 3}
BROKERS = (1, 2, 3)
NOBODY = -1
REQUEST_TIMEOUT_S = 0.5
SETTINGS = Settings.resolve(
    file={},
    environment={},
    overrides={
        "node.id": "1",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    },
)


class LostError(Exception):
    """No answer came: the request, or its answer, was lost, or the broker is away."""


class Weather:
    """How bad it is. `is_late`: a request may arrive after its sender has given it up and asked again."""

    def __init__(self, random: Random, is_late: bool) -> None:
        self.random = random
        self.loss = random.choice((0.0, 0.01, 0.04))
        self.slow = random.choice((0.0, 0.05, 0.2))
        self.is_late = is_late
        self.is_calm = False

    def happens(self, probability: float) -> bool:
        return not self.is_calm and self.random.random() < probability

    def delay_s(self) -> float:
        return self.random.uniform(0, 0.06 if self.happens(self.slow) else 0.004)


class Connection:
    """Requests are delivered in the order in which they are sent, or lost from some point on."""

    def __init__(self, cluster: "Cluster", broker_id: int) -> None:
        self._cluster = cluster
        self._broker_id = broker_id
        self._delivered_at = 0.0
        self.closed = False

    async def ask(self, work: Callable[["Broker"], Awaitable[T]], *, may_be_late: bool = True) -> T:
        """The answer of `work` at the broker; LostError when there is none in time."""
        loop, weather = asyncio.get_running_loop(), self._cluster.weather
        answered: asyncio.Future[T] = loop.create_future()
        timer = loop.call_later(REQUEST_TIMEOUT_S, self._give_up, answered)
        self.closed = self.closed or weather.happens(weather.loss)  # nothing that is sent after a lost request arrives
        may_be_late = may_be_late and weather.is_late
        if not self.closed:
            is_late = may_be_late and weather.happens(weather.loss)
            delay_s = weather.random.uniform(0, 3) if is_late else weather.delay_s()
            self._delivered_at = at = max(self._delivered_at + 1e-6, loop.time() + delay_s)
            loop.call_at(at, self._deliver, work, answered, may_be_late)
        try:
            return await answered
        finally:
            timer.cancel()

    def _give_up(self, answered: "asyncio.Future[Any]") -> None:
        self.closed = True
        if not answered.done():
            answered.set_exception(LostError("no answer"))

    def _deliver(
        self, work: Callable[["Broker"], Awaitable[T]], answered: "asyncio.Future[T]", may_be_late: bool
    ) -> None:
        broker = self._cluster.brokers.get(self._broker_id)
        if broker is None:
            self._give_up(answered)
        elif not self.closed or may_be_late:
            broker.spawn(self._served(broker, work, answered))

    async def _served(
        self, broker: "Broker", work: Callable[["Broker"], Awaitable[T]], answered: "asyncio.Future[T]"
    ) -> None:
        response = await work(broker)
        weather = self._cluster.weather
        if not weather.happens(weather.loss):
            asyncio.get_running_loop().call_later(weather.delay_s(), _answer, answered, response)


def _answer(answered: "asyncio.Future[T]", response: T) -> None:
    if not answered.done():
        answered.set_result(response)


class Replica:
    """A partition at a broker that leads it, or believes so, or once did: as much of `Partition` as the parts use."""

    def __init__(self, shared: "SharedPartition", broker: "Broker") -> None:
        self.topic_partition = shared.name
        self.broker = broker
        self.leadership = SimpleNamespace(leader_epoch=-1)
        self.log = shared.log
        self.high_watermark = 0
        self.is_leader = False
        self.committed_waiters = OffsetWaiters()
        self._shared = shared

    def lead(self, log: Log, leader_epoch: int) -> None:
        self.log, self.high_watermark = log, self._shared.high_watermark
        self.leadership = SimpleNamespace(leader_epoch=leader_epoch)
        self.is_leader = True

    log_start_offset = property(lambda self: self.log.log_start_offset)
    log_end_offset = property(lambda self: self.log.log_end_offset)
    producers = property(lambda self: self.log.producers)
    config = property(lambda self: self.log.config)

    def has_enough_in_sync(self) -> bool:
        return self._shared.is_writable

    def read_uncommitted(self, offset: int, max_bytes: int) -> Any:
        return self.log.read(offset, max_bytes, self.log_end_offset)

    def append(self, batch: Any, acks: int, now_ms: int, *, from_client: bool = True) -> AppendInfo:
        if not self.is_leader:
            raise NotLeaderOrFollowerError("somebody else leads")
        if not self.has_enough_in_sync():
            raise NotEnoughReplicasError("too few replicas are in sync")
        info = self.log.append_as_leader(batch, self.leadership.leader_epoch, now_ms, from_client=from_client)
        self._shared.appended(self)
        return info

    def depose(self) -> None:
        if self.is_leader:
            self.is_leader = False
            self.committed_waiters.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)


class SharedPartition:
    """What the replicas of a partition agree on: the log up to the high watermark, and who leads."""

    def __init__(self, cluster: "Cluster", name: TopicPartition) -> None:
        self.name = name
        self.log = _empty_log(name)
        self.high_watermark = 0
        self.is_writable = True
        self.current: Replica | None = None
        self._cluster = cluster

    def led_by(self, replica: Replica, leader_epoch: int) -> None:
        self.current = replica
        replica.lead(self.log, leader_epoch)
        self.appended(replica)  # what the new leader has, its followers fetch

    def appended(self, replica: Replica) -> None:
        weather, end, epoch = self._cluster.weather, replica.log.log_end_offset, replica.leadership.leader_epoch
        delay_s = weather.random.uniform(0, 0.05 if weather.happens(weather.slow) else 0.003)
        asyncio.get_running_loop().call_later(delay_s, self._commit, replica, epoch, end)

    def _commit(self, replica: Replica, leader_epoch: int, end: int) -> None:
        is_current = replica is self.current and replica.leadership.leader_epoch == leader_epoch
        if is_current and end > self.high_watermark:
            self.high_watermark = replica.high_watermark = end
            if replica.broker.is_running:
                replica.committed_waiters.release(end)

    def elect(self) -> None:
        """Another replica is to lead: it has what is committed, and perhaps some of what is not."""
        self.current = None
        ends = [self.high_watermark, *(end for end in _batch_ends(self.log) if end > self.high_watermark)]
        self.log = _copied(self.log, self.name, self._cluster.weather.random.choice(ends))


class Replicas:
    """The partitions that a broker leads, or has led: as much of `ReplicaManager` as the real parts use."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.image = ClusterImage()
        self.known: dict[TopicPartition, Replica] = {}

    def find(self, topic: str | bytes, index: int) -> Replica:
        found = self.maybe_find(topic, index)
        if found is None:
            state = self.image.partition(_name_of(topic), index)
            raise UnknownTopicOrPartitionError(f"{topic!r}") if state is None else NotLeaderOrFollowerError("not here")
        return found

    def maybe_find(self, topic: str | bytes, index: int) -> Replica | None:
        return self.known.get(TopicPartition(_name_of(topic), index))

    def partition_count(self, topic: str) -> int:
        found = self.image.topics_by_name.get(topic)
        return len(found.partitions) if found else 0

    def leadership_of(self, topic: str, index: int) -> Any:
        state = self.image.partition(topic, index)
        return None if state is None else SimpleNamespace(is_led_by=lambda broker_id: state.leader == broker_id)


class Broker:
    def __init__(self, cluster: "Cluster", broker_id: int) -> None:
        self.broker_id = broker_id
        self.is_running = True
        self.cluster = cluster
        self.replicas: Any = Replicas(broker_id)
        self._tasks: set[asyncio.Task[None]] = set()
        clock = LoopClock()
        wheel = TimerWheel(clock, self.call_later)
        work = LoopWork(self.call_later)
        environment = CoordinatorEnvironment(clock, wheel, work, 2_000, LoadingTurns(work), LoadCounters())
        self.groups = GroupCoordinator(self.replicas, SETTINGS, environment)
        links: BrokerLinks[Any] = BrokerLinks(lambda broker_id: Link(self, broker_id))
        writer = MarkerWriter(self.replicas, self.groups, clock, wheel, lambda error: error_code_of(error)[0])
        sender = MarkerSender(broker_id, self._image, writer, links, self.call_later, wheel)
        self.coordinator = TransactionCoordinator(
            self.replicas, SETTINGS, environment, self._image, self._next_producer_id, sender
        )
        verifier = TransactionVerifier(broker_id, self._image, self.coordinator, links, self.call_later)
        self.transactions = TransactionHandlers(self.coordinator, self._image, self._offsets_partition)
        self.offsets = TransactionOffsetHandler(self.replicas, self.groups, verifier, self._image)
        self.markers = TransactionMarkerHandler(writer)
        self._produce = TransactionalProduce(self.replicas, verifier, wheel, RetryPauses(5, 40), self._carry_out)

    # -- its life

    def call_later(self, delay_s: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        def guarded() -> None:
            if self.is_running:
                call()

        return asyncio.get_running_loop().call_later(delay_s, guarded)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.cluster.errors.append(error)

    def stop(self) -> None:
        """As by kill -9."""
        self.is_running = False
        for task in list(self._tasks):
            task.cancel()

    def apply(self, delta: MetadataDelta, image: ClusterImage) -> None:
        self.replicas.image = image
        for topic_id, changed in delta.partitions_changed.items():
            topic = image.topics_by_id[topic_id]
            for index in changed:
                self._apply_state(TopicPartition(topic.name, index), topic.partitions[index])
        self.groups.metadata_changed(delta, image)
        self.coordinator.metadata_changed(delta, image)

    def _apply_state(self, name: TopicPartition, state: Any) -> None:
        known = self.replicas.known.get(name)
        is_ours = state.leader == self.broker_id
        if known is not None and not (is_ours and state.leader_epoch == known.leadership.leader_epoch):
            known.depose()
        if is_ours and (known is None or not known.is_leader):
            replica = self.replicas.known[name] = known or Replica(self.cluster.shared[name], self)
            self.cluster.take_over(replica, state.leader_epoch)

    def _image(self) -> ClusterImage:
        image: ClusterImage = self.replicas.image
        return image

    # -- what it needs of others

    async def _next_producer_id(self) -> int:
        if self.cluster.weather.happens(0.1):
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        await asyncio.sleep(self.cluster.weather.delay_s())
        self.cluster.next_producer_id += 1
        return self.cluster.next_producer_id

    async def _offsets_partition(self, group_id: str) -> int | None:
        """As InternalTopics finds or makes the topic: known to this broker, or None."""
        if OFFSETS not in self._image().topics_by_name:
            self.cluster.create_topic(OFFSETS)
            await asyncio.sleep(self.cluster.weather.delay_s())
        topic = self._image().topics_by_name.get(OFFSETS)
        return None if topic is None else partition_of(group_id, len(topic.partitions))

    # -- Produce

    async def produce(
        self, connection: Connection, transactional_id: str, version: int, target: TopicPartition, batch: bytearray
    ) -> ErrorCode:
        answered: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        topics = [(target.topic, [(target.partition, memoryview(batch))])]
        view = ProduceRequestView(transactional_id, -1, 1_000, topics)
        request: Any = request_of(version, connection)
        request.park = lambda: answered
        if not self._produce.must_wait(request, view):
            self._append(target, memoryview(batch), answered)
        return await answered

    def _carry_out(self, waiting: Waiting, refusals: Refusals) -> None:
        answered: Any = waiting.slot
        ((topic, ((index, records),)),) = waiting.produce.topics
        assert isinstance(topic, str)
        assert records is not None
        if (topic, index) in refusals:
            _answer(answered, refusals[topic, index])
        else:
            self._append(TopicPartition(topic, index), records, answered)

    def _append(self, target: TopicPartition, records: memoryview, answered: "asyncio.Future[ErrorCode]") -> None:
        try:
            partition = self.replicas.find(*target)
            end = partition.append(records, -1, LoopClock().now_ms()).last_offset + 1
        except Exception as error:
            _answer(answered, error_code_of(error)[0])
            return
        if partition.high_watermark >= end:
            _answer(answered, ErrorCode.NONE)
        else:
            partition.committed_waiters.add(end, lambda outcome: _answer(answered, outcome))


def request_of(version: int, connection: Connection | None = None) -> Any:
    """A request of somebody who may do everything."""
    return SimpleNamespace(
        version=version,
        connection=connection,
        may_on_cluster=lambda *_: True,
        may_on_group=lambda *_: True,
        may_on_topic=lambda *_: True,
        may_on_transactional_id=lambda *_: True,
        may_see=lambda *_: True,
    )


class Link:
    """What brokers ask each other about transactions."""

    def __init__(self, sender: Broker, to: int) -> None:
        self._sender = sender
        self._to = to
        self._connection = Connection(sender.cluster, to)

    def ask(self, request: Any, response_class: type[Any], answered: Callable[[Any], None]) -> None:
        self._sender.spawn(self._asked(request, answered))

    async def _asked(self, request: Any, answered: Callable[[Any], None]) -> None:
        if self._connection.closed:
            self._connection = Connection(self._sender.cluster, self._to)
        try:
            outcome: Any = await self._connection.ask(lambda broker: _served(broker, request))
        except LostError as error:
            outcome = error
        answered(outcome)

    def close(self) -> None:
        self._connection.closed = True


async def _served(broker: Broker, request: Any) -> Any:
    if isinstance(request, WriteTxnMarkersRequest):
        return await broker.markers.write_markers(request, request_of(2))
    return await broker.transactions.add_partitions(request, request_of(5))


class Cluster:
    def __init__(self, weather: Weather) -> None:
        self.weather = weather
        self.image = ClusterImage()
        self.brokers: dict[int, Broker] = {}
        self.shared: dict[TopicPartition, SharedPartition] = {}
        self.errors: list[BaseException] = []
        self.next_producer_id = 1_000
        self.elections = 0
        self._pending: dict[Broker, list[tuple[MetadataDelta, ClusterImage]]] = {}
        self.commit(FeatureLevelRecord(TRANSACTION_VERSION, 2))
        for broker_id in BROKERS:
            self.start(broker_id)

    # -- metadata

    def commit(self, *records: MetadataRecord) -> None:
        draft, delta = self.image.fork(), MetadataDelta()
        for record in records:
            draft.replay(record, delta)
        self.image = draft
        for broker in self.brokers.values():
            queue = self._pending[broker]
            queue.append((delta, draft))
            if len(queue) == 1:
                self._publish_later(broker)

    def _publish_later(self, broker: Broker) -> None:
        slow = self.weather.happens(self.weather.slow)
        broker.call_later(self.weather.random.uniform(0, 0.3 if slow else 0.005), lambda: self._publish(broker))

    def _publish(self, broker: Broker) -> None:
        queue = self._pending[broker]
        broker.apply(*queue.pop(0))
        if queue:
            self._publish_later(broker)

    def create_topic(self, name: str) -> None:
        if name in self.image.topics_by_name:
            return
        topic_id, records = TOPIC_IDS[name], []
        for index in range(PARTITIONS[name]):
            leader = self.weather.random.choice(sorted(self.brokers) or [NOBODY])
            others = [leader, *(broker_id for broker_id in BROKERS if broker_id != leader)]
            self.shared[TopicPartition(name, index)] = SharedPartition(self, TopicPartition(name, index))
            records.append(PartitionRecord(index, topic_id, others, others, leader=leader, leader_epoch=0))
        self.commit(TopicRecord(name, topic_id), *records)

    # -- brokers

    def start(self, broker_id: int) -> None:
        if broker_id not in self.brokers:
            self.brokers[broker_id] = broker = Broker(self, broker_id)
            self._pending[broker] = []
            broker.apply(MetadataDelta.from_empty(self.image), self.image)
            self._elect_where_nobody_leads()

    def crash(self, broker_id: int) -> None:
        """Others lead as soon as the controller knows."""
        broker = self.brokers.pop(broker_id, None)
        if broker is not None:
            broker.stop()
            delay_s = self.weather.random.uniform(0, 0.1)
            asyncio.get_running_loop().call_later(delay_s, self._elect_where_nobody_leads)

    def _elect_where_nobody_leads(self) -> None:
        for name in self.shared:
            if self.leader_of(name) not in self.brokers:
                self.move(name)

    def move(self, name: TopicPartition) -> None:
        before = self.leader_of(name)
        candidates = sorted(self.brokers.keys() - {before}) or sorted(self.brokers.keys())
        leader = self.weather.random.choice(candidates) if candidates else NOBODY
        if leader != before:
            self.elections += 1
            self.shared[name].elect()
            self.commit(PartitionChangeRecord(name.partition, TOPIC_IDS[name.topic], leader=leader))

    def take_over(self, replica: Replica, leader_epoch: int) -> None:
        """A broker has heard that it leads; perhaps too late."""
        name = replica.topic_partition
        shared, state = self.shared[name], self.image.partition(*name)
        if state is not None and state.leader_epoch == leader_epoch:
            shared.led_by(replica, leader_epoch)
        else:
            replica.lead(_copied(shared.log, name, shared.high_watermark), leader_epoch)

    def leader_of(self, name: TopicPartition) -> int:
        state = self.image.partition(*name)
        return NOBODY if state is None else state.leader

    def current(self, name: TopicPartition) -> Replica:
        replica = self.shared[name].current
        assert replica is not None, f"nobody leads {name}"
        return replica


def _name_of(topic: str | bytes) -> str:
    return topic if isinstance(topic, str) else next(name for name, key in TOPIC_IDS.items() if key == topic)


def _empty_log(name: TopicPartition) -> Log:
    log = reopen(SimulatedDisk(), directory=f"/data/{name.topic}-{name.partition}")
    log.producers.verifies_transactions = True
    return log


def _batches(log: Log) -> bytes:
    end = log.log_end_offset
    return b"".join(bytes(part.read()) for part in log.read(0, 1 << 30, end)) if end else b""


def _batch_ends(log: Log) -> list[int]:
    return [header.next_offset for _, header in iter_headers(memoryview(_batches(log)))]


def _copied(log: Log, name: TopicPartition, end_offset: int) -> Log:
    copy, data = _empty_log(name), memoryview(_batches(log))
    for position, header in iter_headers(data):
        if header.next_offset <= end_offset:
            copy.append_as_follower(bytes(data[position : position + header.size_bytes]), LoopClock().now_ms())
    return copy
