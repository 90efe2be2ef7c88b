"""One simulated life of replicated partitions: a while with faults under load, then none, after which all must be well.

Faults: brokers killed, or losing power and with it unsynced bytes, or even their disk; leaders moved; links cut; the
controller away; log starts moved. At most one broker at a time has lost data, which min.insync.replicas=2 covers.
"""

from collections.abc import Callable
from random import Random
from typing import TypeVar

from replica_brokers import ReplicaBroker
from replica_cluster import CONTROLLER, TOPIC_ID, ReplicaCluster, Weather
from replica_invariants import History, require

from sskafka.records.builder import NewRecord, build_batch
from sskafka.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

FAULTS_MS = 12_000
HEALING_MS = 15_000
FAULT_GAP_MS = 700
OUTAGE_MS = 2500
SESSION_MS = 600
"""After which the controller fences a broker that it has not heard of."""

_WEATHERS = (
    Weather(),
    Weather(delay_ms=15),
    Weather(delay_ms=5, loss_percent=5, slow_percent=5),
    Weather(delay_ms=30, loss_percent=10, slow_percent=10),
)


R = TypeVar("R", bound="Run")


class Run:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random = Random(f"faults of {seed}")
        self.partitions = random.choice((1, 1, 2))
        settings = {"replica.fetch.max.bytes": random.choice(("200", "1048576"))}
        self.cluster = self._make_cluster(seed, random.choice(_WEATHERS), settings)
        self.time = self.cluster.time
        self.history = History(self.cluster, self.partitions)
        self.dirty: int | None = None
        """The broker that lost data and is not yet in sync everywhere again."""
        self._down: set[int] = set()
        self._next_value = 0
        self.faults: list[str] = []

    def _make_cluster(self, seed: int, weather: Weather, settings: dict[str, str]) -> ReplicaCluster:
        return ReplicaCluster(seed, weather, settings=settings)

    def go(self) -> None:
        configs = self.random.choice(({}, {}, {"flush.messages": "1"}, {"segment.bytes": "1048576"}))
        order = [1, 2, 3]
        assignments = [order[index:] + order[:index] for index in range(self.partitions)]
        self.cluster.controller.create_topic(assignments, configs)
        self.time.run_for(200)
        self._produce_later()
        self._fault_later()
        self.time.run_for(FAULTS_MS, self.history.check)
        self._heal()
        self.time.run_for(HEALING_MS, self.history.check)
        self._check_health()

    # -- load

    def _produce_later(self) -> None:
        if self.time.elapsed_ms < FAULTS_MS:
            self.time.call_later(self.random.uniform(0.001, 0.04), self._produce)

    def _produce(self) -> None:
        """To a broker that leads, or that may still believe so."""
        self._produce_later()
        index = self.random.randrange(self.partitions)
        brokers = [broker for broker in self.cluster.brokers.values() if leads(broker, index)]
        if not brokers:
            return
        values = [f"{self._next_value + number}".encode() for number in range(self.random.randint(1, 3))]
        self._next_value += len(values)
        batch = build_batch([NewRecord(None, value, (), 0) for value in values])
        data = TopicProduceData(topic_id=TOPIC_ID, partition_data=[PartitionProduceData(index, batch)])

        def answered(response: ProduceResponse) -> None:
            result = response.responses[0].partition_responses[0]
            if result.error_code == 0:
                for number, value in enumerate(values):
                    self._acknowledged(index, result.base_offset + number, value)

        self.random.choice(brokers).produce(ProduceRequest(acks=-1, timeout_ms=1500, topic_data=[data]), answered)

    def _acknowledged(self, index: int, offset: int, value: bytes) -> None:
        known = self.history.acknowledged.setdefault((index, offset), value)
        require(known == value, "acknowledged", f"{known!r} and {value!r}, both at {offset}")

    # -- faults

    def _fault_later(self) -> None:
        if self.time.elapsed_ms < FAULTS_MS:
            self.time.call_later(self.random.uniform(0, 2 * FAULT_GAP_MS) / 1000, self._fault)

    def _fault(self) -> None:
        self._fault_later()
        fault = self.random.choice(self._possible_faults())
        self.faults.append(f"{self.time.elapsed_ms:.0f} {fault.__name__}")
        fault()

    def _possible_faults(self) -> tuple[Callable[[], None], ...]:
        return (
            self._kill,
            self._kill,
            self._cut_power,
            self._cut_link,
            self._move_leader,
            self._send_controller_away,
            self._checkpoint,
            self._delete_records,
            self._cut_off_leader,
        )

    def _kill(self) -> None:
        self._take_down(self.cluster.stop, lost_data=False)

    def _cut_power(self) -> None:
        if self.dirty is not None and not self._is_clean_again():
            return
        self._take_down(self._lose_data, lost_data=True)

    def _lose_data(self, broker_id: int) -> None:
        self.dirty = broker_id
        self.cluster.cut_power(broker_id)
        if self.random.randrange(4) == 0:
            self.cluster.replace_disk(broker_id)

    def _is_clean_again(self) -> bool:
        states = [self.cluster.controller.state(index) for index in range(self.partitions)]
        return self.dirty not in self._down and all(self.dirty in state.isr for state in states)

    def _take_down(self, how: Callable[[int], None], lost_data: bool) -> None:
        if not self.cluster.brokers:
            return
        broker_id = self.random.choice(sorted(self.cluster.brokers))
        how(broker_id)
        self._down.add(broker_id)
        self.time.call_later(self.random.uniform(0, SESSION_MS) / 1000, lambda: self._fence(broker_id))
        back_ms = SESSION_MS + self.random.uniform(0, OUTAGE_MS)
        self.time.call_later(back_ms / 1000, lambda: self._bring_back(broker_id, lost_data))

    def _fence(self, broker_id: int) -> None:
        if broker_id in self._down:
            self.cluster.controller.fence(broker_id)

    def _bring_back(self, broker_id: int, lost_data: bool) -> None:
        if broker_id in self._down:
            self._down.discard(broker_id)
            self.cluster.start(broker_id, lost_data)

    def _cut_link(self) -> None:
        one, other = self.random.sample((CONTROLLER, 1, 2, 3), 2)
        self._cut(frozenset((one, other)))

    def _cut(self, link: frozenset[int]) -> None:
        self.cluster.network.cut.add(link)
        delay_s = self.random.uniform(0, OUTAGE_MS) / 1000
        self.time.call_later(delay_s, lambda: self.cluster.network.cut.discard(link))

    def _cut_off_leader(self) -> None:
        """It hears of nothing and goes on believing that it leads, while another is elected."""
        index = self.random.randrange(self.partitions)
        leader = self.cluster.controller.state(index).leader
        if leader not in self.cluster.brokers:
            return
        self._cut(frozenset((CONTROLLER, leader)))
        self.cluster.controller.fence(leader)
        self.time.call_later(OUTAGE_MS / 1000, lambda: self._unfence(leader))

    def _unfence(self, broker_id: int) -> None:
        if broker_id in self.cluster.brokers:
            self.cluster.controller.unfence(broker_id)

    def _move_leader(self) -> None:
        self.cluster.controller.move_leader(self.random.randrange(self.partitions), self.random.randint(1, 3))

    def _send_controller_away(self) -> None:
        self.cluster.controller.is_away = True
        self.time.call_later(self.random.uniform(0, OUTAGE_MS) / 1000, self._fetch_controller)

    def _fetch_controller(self) -> None:
        self.cluster.controller.is_away = False

    def _checkpoint(self) -> None:
        for broker in self.cluster.brokers.values():
            broker.checkpoint()

    def _delete_records(self) -> None:
        index = self.random.randrange(self.partitions)
        leader = self.cluster.leader(index)
        if leader is None or not leads(leader, index):
            return
        partition = leader.partition(TOPIC_ID, index)
        partition.start_at(self.random.randint(partition.log.log_start_offset, partition.high_watermark))
        self.history.starts[index] = max(self.history.starts[index], partition.log.log_start_offset)

    # -- afterwards

    def _heal(self) -> None:
        cluster = self.cluster
        cluster.network.cut.clear()
        cluster.network.weather = Weather()
        cluster.controller.is_away = False
        for broker_id in sorted(self._down):
            self._fence(broker_id)
            self._bring_back(broker_id, lost_data=broker_id == self.dirty)
        for broker_id in cluster.brokers:
            cluster.controller.unfence(broker_id)

    def _check_health(self) -> None:
        for index in range(self.partitions):
            state = self.cluster.controller.state(index)
            require(sorted(state.isr) == [1, 2, 3], "healed", f"partition {index} is {state}")
            replicas = [self.cluster.partition(broker_id, index) for broker_id in state.replicas]
            ends = {(replica.log.log_end_offset, replica.high_watermark) for replica in replicas}
            require(len(ends) == 1, "healed", [(str(r.log), r.high_watermark) for r in replicas])
            require(len(set(ends.pop())) == 1, "healed", "records that nobody commits")
        self.history.check_acknowledged()


def leads(broker: ReplicaBroker, index: int) -> bool:
    partition = broker.maybe_partition(TOPIC_ID, index)
    return partition is not None and partition.is_leader


def run_seed(seed: int) -> Run:
    return run_noted(Run(seed))


def run_noted(run: R) -> R:
    """A failure tells how to have it again."""
    try:
        run.go()
    except BaseException as error:
        error.add_note(f"seed {run.seed} at {run.time.elapsed_ms:.1f} ms; faults: {', '.join(run.faults)}")
        raise
    return run
