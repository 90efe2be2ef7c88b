"""A cluster of simulated brokers with a model of the controller between them.

The controller is one process that never fails, but its answers and its metadata travel as slowly as everything else.
It elects from the in-sync set, or from replicas that left it when it was already small but are known to have all that
is committed (KIP-966); a broker that lost unsynced bytes counts as neither when it comes back.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from replica_brokers import ReplicaBroker
from simulated_disk import SimulatedDisk
from virtual_time import VirtualTime

from sskafka.client.broker_link import Answered
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.metadata.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from sskafka.model.errors import ErrorCode
from sskafka.replication.partition import Partition
from sskafka.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    RequestPartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)
from sskafka.wire.messages.fetch import FetchRequest
from sskafka.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from sskafka.wire.schema import Message

TOPIC, TOPIC_ID = "orders", b"orders".ljust(16, b"-")
NO_LEADER = -1
LATEST = -1
REQUEST_TIMEOUT_MS = 400
METADATA_RETRY_S = 0.05


@dataclass(frozen=True, slots=True)
class Weather:
    delay_ms: int = 1
    loss_percent: int = 0
    slow_percent: int = 0
    slow_delay_ms: int = 800


class Network:
    """Links between nodes: messages are late, lost, or cut off; what was sent over one link stays in order."""

    def __init__(self, time: VirtualTime, random: Random, weather: Weather) -> None:
        self.time = time
        self.random = random
        self.weather = weather
        self.cut: set[frozenset[int]] = set()

    def is_cut(self, one: int, other: int) -> bool:
        return frozenset((one, other)) in self.cut

    def delay_ms(self) -> float:
        weather = self.weather
        if self.random.randrange(100) < weather.slow_percent:
            return self.random.uniform(0, weather.slow_delay_ms)
        return self.random.uniform(0, weather.delay_ms)

    def delivers(self, one: int, other: int) -> bool:
        return not self.is_cut(one, other) and self.random.randrange(100) >= self.weather.loss_percent


CONTROLLER = 0


class Exchange:
    """One request and its one answer, which may be a time-out instead."""

    def __init__(self, network: Network, sender: ReplicaBroker, to: int, answered: Answered[Any]) -> None:
        self._network = network
        self._sender = sender
        self._to = to
        self._answered: Answered[Any] | None = answered
        sender.call_later(REQUEST_TIMEOUT_MS / 1000, lambda: self.settle(TimeoutError("no answer")))

    def send(self, deliver: Callable[[Callable[[Any], None]], None]) -> None:
        """`deliver` is called at the other side with what takes its answer."""
        network = self._network
        if network.delivers(self._sender.broker_id, self._to):
            network.time.call_later(network.delay_ms() / 1000, lambda: deliver(self.answer))

    def answer(self, response: Any) -> None:
        network = self._network
        if network.delivers(self._sender.broker_id, self._to):
            self._sender.call_later(network.delay_ms() / 1000, lambda: self.settle(response))

    def settle(self, outcome: Any) -> None:
        answered, self._answered = self._answered, None
        if answered is not None:
            answered(outcome)

    def forget(self) -> None:
        self._answered = None


class Link:
    def __init__(self, cluster: "ReplicaCluster", sender_id: int, to: int) -> None:
        self._cluster = cluster
        self._sender_id = sender_id
        self._to = to
        self._under_way: list[Exchange] = []

    def ask(self, request: Message, response_class: type[Message], answered: Answered[Any]) -> None:
        def deliver(answer: Callable[[Any], None]) -> None:
            broker = self._cluster.brokers.get(self._to)
            if broker is None:
                return
            if isinstance(request, FetchRequest):
                broker.fetch(request, answer)
            else:
                assert isinstance(request, ListOffsetsRequest)
                answer(_list_offsets(broker, request))

        self._exchange(answered).send(deliver)

    def close(self) -> None:
        for exchange in self._under_way:
            exchange.forget()

    def _exchange(self, answered: Answered[Any]) -> Exchange:
        exchange = Exchange(self._cluster.network, self._cluster.brokers[self._sender_id], self._to, answered)
        self._under_way = [exchange]
        return exchange


class ControllerLink:
    def __init__(self, cluster: "ReplicaCluster", sender_id: int) -> None:
        self._cluster = cluster
        self._sender_id = sender_id

    def close(self) -> None: ...

    def ask(self, request: Message, response_class: type[Message], answered: Answered[Any]) -> None:
        cluster = self._cluster
        assert isinstance(request, AlterPartitionRequest)
        exchange = Exchange(cluster.network, cluster.brokers[self._sender_id], CONTROLLER, answered)
        exchange.send(lambda answer: answer(cluster.controller.alter_partition(request)))


class ModelController:
    def __init__(self, publish: Callable[[MetadataDelta, ClusterImage], None], min_insync: int) -> None:
        self.image = ClusterImage()
        self.is_away = False
        self._publish = publish
        self._min_insync = min_insync

    def commit(self, *records: MetadataRecord) -> None:
        draft, delta = self.image.fork(), MetadataDelta()
        for record in records:
            draft.replay(record, delta)
        self.image = draft
        self._publish(delta, draft)

    def state(self, index: int = 0) -> PartitionImage:
        return self.image.topics_by_id[TOPIC_ID].partitions[index]

    def create_topic(self, replicas: Iterable[Iterable[int]], configs: Mapping[str, str] | None = None) -> None:
        partitions = [
            PartitionRecord(index, TOPIC_ID, assigned, assigned, leader=assigned[0], leader_epoch=0, partition_epoch=0)
            for index, assigned in enumerate(map(list, replicas))
        ]
        settings = [ConfigRecord(2, TOPIC, name, value) for name, value in (configs or {}).items()]
        self.commit(TopicRecord(TOPIC, TOPIC_ID), *settings, *partitions)

    # -- brokers come and go

    def register(self, broker_id: int, lost_data: bool, rack: str | None = None) -> int:
        """Still fenced. Gives the broker's epoch."""
        if self.image.is_active(broker_id):
            self.fence(broker_id)
        epoch = self.image.next_offset
        record = RegisterBrokerRecord(broker_id, broker_epoch=epoch, fenced=True, rack=rack)
        self.commit(record)
        if lost_data:
            self._change_all(lambda state: self._without(state, broker_id, keeps_eligible=False))
        return epoch

    def unfence(self, broker_id: int) -> None:
        self.commit(BrokerRegistrationChangeRecord(broker_id, self.image.brokers[broker_id].epoch, fenced=-1))
        self._change_all(lambda state: self._elected(state, state.isr, state.eligible_leader_replicas))

    def fence(self, broker_id: int) -> None:
        self.commit(BrokerRegistrationChangeRecord(broker_id, self.image.brokers[broker_id].epoch, fenced=1))
        self._change_all(lambda state: self._without(state, broker_id, keeps_eligible=True))

    def move_leader(self, index: int, leader: int) -> None:
        """To a member of the in-sync set, as for a preferred leader."""
        if leader in self.state(index).isr and self.image.is_active(leader):
            self.commit(PartitionChangeRecord(index, TOPIC_ID, leader=leader))

    def _change_all(self, change: Callable[[PartitionImage], PartitionChangeRecord | None]) -> None:
        for index, state in self.image.topics_by_id.get(TOPIC_ID, _NO_TOPIC).partitions.items():
            record = change(state)
            if record is not None:
                record.partition_id, record.topic_id = index, TOPIC_ID
                self.commit(record)

    def _without(self, state: PartitionImage, broker_id: int, keeps_eligible: bool) -> PartitionChangeRecord | None:
        isr = tuple(replica for replica in state.isr if replica != broker_id)
        eligible = self._eligible(state, isr)
        if not keeps_eligible:
            eligible = tuple(replica for replica in eligible if replica != broker_id)
        return self._elected(state, isr, eligible)

    def _eligible(self, state: PartitionImage, isr: tuple[int, ...]) -> tuple[int, ...]:
        if len(isr) >= min(self._min_insync, len(state.replicas)):
            return ()
        candidates = dict.fromkeys(state.eligible_leader_replicas + state.isr)
        return tuple(replica for replica in candidates if replica not in isr)

    def _elected(
        self, state: PartitionImage, isr: tuple[int, ...], eligible: tuple[int, ...]
    ) -> PartitionChangeRecord | None:
        record = PartitionChangeRecord()
        leader = state.leader
        if leader not in isr or not self.image.is_active(leader):
            leader = next((replica for replica in isr + eligible if self.image.is_active(replica)), NO_LEADER)
        if leader in eligible:
            isr, eligible = (leader,), tuple(replica for replica in eligible if replica != leader)
        if leader != state.leader:
            record.leader = leader
        if isr != state.isr:
            record.isr = list(isr)
        if eligible != state.eligible_leader_replicas:
            record.eligible_leader_replicas = list(eligible)
        return record if record != PartitionChangeRecord() else None

    # -- AlterPartition

    def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        broker = self.image.brokers.get(request.broker_id)
        if self.is_away or broker is None or broker.epoch != request.broker_epoch:
            code = ErrorCode.NOT_CONTROLLER if self.is_away else ErrorCode.STALE_BROKER_EPOCH
            return AlterPartitionResponse(error_code=code)
        return AlterPartitionResponse(
            topics=[
                ResponseTopicData(topic.topic_id, [self._alter(request.broker_id, asked) for asked in topic.partitions])
                for topic in request.topics
            ]
        )

    def _alter(self, broker_id: int, asked: RequestPartitionData) -> ResponsePartitionData:
        index = asked.partition_index
        error = self._objection(broker_id, asked)
        if error is not None:
            return ResponsePartitionData(index, error)
        state = self.state(index)
        isr = tuple(member.broker_id for member in asked.new_isr_with_epochs)
        eligible = self._eligible(state, isr)
        self.commit(PartitionChangeRecord(index, TOPIC_ID, isr=list(isr), eligible_leader_replicas=list(eligible)))
        state = self.state(index)
        return ResponsePartitionData(
            index, 0, state.leader, state.leader_epoch, list(state.isr), 0, state.partition_epoch
        )

    def _objection(self, broker_id: int, asked: RequestPartitionData) -> ErrorCode | None:
        state = self.state(asked.partition_index)
        if asked.leader_epoch != state.leader_epoch or broker_id != state.leader:
            return ErrorCode.FENCED_LEADER_EPOCH
        if asked.partition_epoch != state.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        for member in asked.new_isr_with_epochs:
            broker = self.image.brokers.get(member.broker_id)
            if broker is None or not broker.is_active or member.broker_epoch not in {-1, broker.epoch}:
                return ErrorCode.INELIGIBLE_REPLICA
        return None


class ReplicaCluster:
    def __init__(
        self,
        seed: int = 0,
        weather: Weather | None = None,
        *,
        brokers: int = 3,
        min_insync: int = 2,
        settings: Mapping[str, str] | None = None,
        racks: Mapping[int, str] | None = None,
    ) -> None:
        self.random = Random(f"cluster {seed}")
        self.time = VirtualTime()
        self.network = Network(self.time, self.random, weather or Weather())
        self.controller = ModelController(self._publish, min_insync)
        self.brokers: dict[int, ReplicaBroker] = {}
        self.disks = {broker_id: SimulatedDisk() for broker_id in range(1, brokers + 1)}
        self.racks = racks or {}
        self._settings = {"min.insync.replicas": str(min_insync), **(settings or {})}
        self._pending: dict[int, list[tuple[MetadataDelta, ClusterImage]]] = {}
        for broker_id in self.disks:
            self.start(broker_id)

    # -- brokers

    def start(self, broker_id: int, lost_data: bool = False) -> ReplicaBroker:
        epoch = self.controller.register(broker_id, lost_data, self.racks.get(broker_id))
        broker = ReplicaBroker(
            broker_id,
            self.time,
            self.disks[broker_id],
            lambda leader_id: Link(self, broker_id, leader_id),
            ControllerLink(self, broker_id),
            epoch,
            self.random,
            self._settings,
        )
        self.brokers[broker_id] = broker
        self.on_started(broker)
        self._pending[broker_id] = []
        broker.apply(MetadataDelta.from_empty(self.controller.image), self.controller.image)
        self.controller.unfence(broker_id)
        return broker

    def on_started(self, broker: ReplicaBroker) -> None:
        """For clusters whose brokers do more than keep replicas."""

    def stop(self, broker_id: int) -> None:
        """Killed; the controller does not know yet. The page cache survives."""
        self.brokers.pop(broker_id).stop()

    def cut_power(self, broker_id: int) -> None:
        """Killed, and what was not synced is gone."""
        self.stop(broker_id)
        self.disks[broker_id].crash(self.random)

    def replace_disk(self, broker_id: int) -> None:
        self.disks[broker_id] = SimulatedDisk()

    def partition(self, broker_id: int, index: int = 0) -> Partition:
        return self.brokers[broker_id].partition(TOPIC_ID, index)

    def leader(self, index: int = 0) -> ReplicaBroker | None:
        return self.brokers.get(self.controller.state(index).leader)

    # -- metadata

    def _publish(self, delta: MetadataDelta, image: ClusterImage) -> None:
        """In order to each broker, at its own pace."""
        for broker_id, broker in self.brokers.items():
            queue = self._pending[broker_id]
            queue.append((delta, image))
            if len(queue) == 1:
                self._deliver_later(broker)

    def _deliver_later(self, broker: ReplicaBroker) -> None:
        broker.call_later(self.network.delay_ms() / 1000, lambda: self._deliver(broker))

    def _deliver(self, broker: ReplicaBroker) -> None:
        queue = self._pending[broker.broker_id]
        if self.network.is_cut(broker.broker_id, CONTROLLER):
            broker.call_later(METADATA_RETRY_S, lambda: self._deliver(broker))
            return
        broker.apply(*queue.pop(0))
        if queue:
            self._deliver_later(broker)


def _list_offsets(broker: ReplicaBroker, request: ListOffsetsRequest) -> ListOffsetsResponse:
    topic = request.topics[0]
    asked = topic.partitions[0]
    try:
        partition = broker.replicas.find(topic.name, asked.partition_index)
        partition.check_leader_epoch(asked.current_leader_epoch)
    except Exception:
        result = ListOffsetsPartitionResponse(asked.partition_index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    else:
        log = partition.log
        offset = log.log_end_offset if asked.timestamp == LATEST else log.log_start_offset
        result = ListOffsetsPartitionResponse(asked.partition_index, 0, offset=offset)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(topic.name, [result])])


class _NoTopic:
    partitions: dict[int, PartitionImage] = {}


_NO_TOPIC: Any = _NoTopic()
