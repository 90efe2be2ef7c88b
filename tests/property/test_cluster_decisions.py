"""Any history of crashes, returns, ISR changes, moves and elections keeps what the cluster promises.

The model knows what the metadata does not: which replicas truly hold everything that was committed. A leader commits
while its ISR has min.insync.replicas members; what it commits then is with the ISR alone. An election that is not
marked as recovering must choose one who holds it all.
"""

from dataclasses import dataclass, field
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from sskafka.metadata.alter_partition import alter_partition
from sskafka.metadata.brokers.heartbeats import broker_heartbeat
from sskafka.metadata.brokers.lifecycle import fence_brokers, register_broker, supported_features
from sskafka.metadata.brokers.sessions import BrokerSessions
from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.elect_leaders import elect_leaders, plan_leader_rebalance
from sskafka.metadata.features import new_cluster_levels
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.metadata.reassignments import alter_partition_reassignments
from sskafka.metadata.records import FeatureLevelRecord, MetadataRecord
from sskafka.metadata.topics import create_topics
from sskafka.model.settings import Settings
from sskafka.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from sskafka.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from sskafka.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from sskafka.wire.messages.broker_registration import BrokerRegistrationRequest
from sskafka.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from sskafka.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

CLUSTER_ID = "c"
TIMEOUT_MS = 100
BROKERS = range(1, 6)
PARTITIONS = range(3)
SETTINGS = Settings.resolve()


@dataclass(slots=True)
class Machine:
    """One broker's process and disk."""

    directory: bytes
    incarnation: int = 0
    epoch: int = -1
    is_up: bool = False
    clean_epoch: int = -1
    """What a clean stop wrote down for the next life."""
    is_stopping: bool = False


@dataclass
class Model:
    min_insync: int
    uses_elr: bool
    allows_unclean: bool
    image: ClusterImage = field(default_factory=ClusterImage)
    log: list[MetadataRecord] = field(default_factory=list)
    now_ms: int = 0
    machines: dict[int, Machine] = field(default_factory=dict)
    holders: list[set[int]] = field(default_factory=lambda: [set() for _ in PARTITIONS])
    """By partition: the replicas that hold everything committed so far."""

    empty: list[set[int]] = field(default_factory=lambda: [set() for _ in PARTITIONS])
    """By partition: those whose disk was replaced and who have not been in sync since."""

    def __post_init__(self) -> None:
        self.sessions = BrokerSessions(TIMEOUT_MS)
        self.asked_for_unclean = False
        self.joining: set[int] = set()
        levels = new_cluster_levels()
        if not self.uses_elr:
            del levels["eligible.leader.replicas.version"]
        self.write([FeatureLevelRecord(name, level) for name, level in levels.items()])
        for number in BROKERS:
            self.machines[number] = Machine(bytes([number]) * 16)
            self.start(number)
            self.beat(number)
        self.create_topic()

    def create_topic(self) -> None:
        configs = [
            CreatableTopicConfig("min.insync.replicas", str(self.min_insync)),
            CreatableTopicConfig("unclean.leader.election.enable", str(self.allows_unclean).lower()),
        ]
        topic = CreatableTopic("t", len(PARTITIONS), 3, configs=configs)
        self.apply(create_topics(self.image, CreateTopicsRequest([topic]), SETTINGS, Random(1).randbytes))
        for number in PARTITIONS:
            self.holders[number] = set(self.partition(number).isr)

    def partition(self, number: int) -> PartitionImage:
        return self.image.topics_by_name["t"].partitions[number]

    def apply(self, decision: ControllerResult[object]) -> None:
        self.write(decision.records)

    def write(self, records: object) -> None:
        assert isinstance(records, list | tuple)
        has_topic = "t" in self.image.topics_by_name
        before = [self.partition(number) for number in PARTITIONS] if has_topic else []
        for record in records:
            self.image.replay(record, MetadataDelta())
            self.log.append(record)
        for number, old in enumerate(before):
            self.check(number, old, self.partition(number))

    def check(self, number: int, old: PartitionImage, new: PartitionImage) -> None:
        if new == old:
            return
        isr, eligible, replicas = set(new.isr), set(new.eligible_leader_replicas), set(new.replicas)
        assert len(isr) == len(new.isr)
        assert isr <= replicas
        assert eligible <= replicas
        assert not isr & eligible
        assert len(new.directories) == len(new.replicas) == len(replicas)
        assert set(new.adding_replicas) <= replicas
        assert set(new.removing_replicas) <= replicas
        assert not set(new.adding_replicas) & set(new.removing_replicas)
        assert new.partition_epoch > old.partition_epoch
        assert new.leader_epoch >= old.leader_epoch
        assert new.leader == old.leader or new.leader_epoch > old.leader_epoch
        if new.has_leader:
            assert new.leader in isr
            assert self.image.is_active(new.leader)
        elif not self.uses_elr:
            assert isr
        if self.uses_elr or new.has_leader:
            assert all(self.image.is_active(replica) for replica in isr)
        self.check_end_of_move(old, new)
        self.check_election(number, old, new)
        self.commit(number)
        self.empty[number] -= set(new.isr) if new.has_leader else set()

    def check_end_of_move(self, old: PartitionImage, new: PartitionImage) -> None:
        if new.leader_recovery_state == 1:
            return
        arrived = {*new.replicas} - {*old.replicas} | {*old.adding_replicas} & {*new.replicas}
        if not new.is_reassigning:
            assert arrived <= set(new.isr)
        if not set(old.isr) <= set(new.replicas):
            assert len(new.isr) >= min(self.min_insync, len(new.replicas))

    def check_election(self, number: int, old: PartitionImage, new: PartitionImage) -> None:
        if not new.has_leader or new.leader_epoch == old.leader_epoch:
            return
        if new.leader_recovery_state == 1:
            # elected uncleanly, gone before it had recovered, and back: that is no second unclean election
            is_back = old.leader_recovery_state == 1 and old.isr == (new.leader,)
            if not self.allows_unclean and not self.asked_for_unclean and not is_back:
                assert (new.leader,) == old.last_known_eligible_leader_replicas
                assert new.leader not in self.empty[number]
            self.holders[number] = {new.leader}  # what it does not have is lost, and known to be
        elif self.uses_elr:
            assert new.leader in {*old.isr, *old.eligible_leader_replicas, *self.joining}
            if self.machines[new.leader].is_up:  # of a dead one nobody knows yet, and it will not lead
                assert new.leader in self.holders[number], f"{new.leader} does not hold what was committed"

    def commit(self, number: int) -> None:
        """Whatever may be committed is, at once, so that whoever is not in the ISR lacks something."""
        state = self.partition(number)
        enough = min(self.min_insync, len(state.replicas))
        can_all_fetch = all(self.machines[replica].is_up for replica in state.isr)
        if state.has_leader and can_all_fetch and len(state.isr) >= enough:
            self.holders[number] = set(state.isr)

    # what may happen

    def start(self, number: int) -> None:
        machine = self.machines[number]
        if machine.is_up:
            return
        request = BrokerRegistrationRequest(
            number,
            CLUSTER_ID,
            (number * 1000 + machine.incarnation + 1).to_bytes(16, "big"),
            features=supported_features(),
            log_dirs=[machine.directory],
            previous_broker_epoch=machine.clean_epoch,
        )
        may_be_alive = self.sessions.may_be_alive(number, self.now_ms)
        decision = register_broker(self.image, request, CLUSTER_ID, SETTINGS, previous_may_be_alive=may_be_alive)
        if decision.response.error_code:
            assert may_be_alive
            return
        machine.incarnation += 1
        machine.is_up, machine.is_stopping = True, False
        machine.epoch, machine.clean_epoch = decision.response.broker_epoch, -1
        self.apply(decision)
        self.sessions.touch(number, machine.epoch, self.now_ms)

    def beat(self, number: int, *, wants_to_stop: bool = False) -> None:
        machine = self.machines[number]
        if not machine.is_up:
            return
        machine.is_stopping |= wants_to_stop
        at = self.image.next_offset - 1
        request = BrokerHeartbeatRequest(number, machine.epoch, at, want_shut_down=machine.is_stopping)
        decision = broker_heartbeat(self.image, request, self.sessions, SETTINGS, self.now_ms)
        assert decision.response.error_code == 0
        self.apply(decision)
        if decision.response.should_shut_down:
            machine.is_up, machine.clean_epoch = False, machine.epoch

    def kill(self, broker_id: int, *, wipe: bool = False) -> None:
        """A power cut: what was not flushed is lost, so this replica holds nothing for sure."""
        machine = self.machines[broker_id]
        if wipe and not machine.is_up:
            machine.directory, machine.clean_epoch = bytes([(machine.directory[0] + 20) % 256]) * 16, -1
            for number in PARTITIONS:
                self.empty[number].add(broker_id)
        elif not machine.is_up:
            return
        machine.is_up = False
        for holders in self.holders:
            holders.discard(broker_id)

    def wait(self, ms: int) -> None:
        self.now_ms += ms
        self.apply(fence_brokers(self.image, self.sessions.expired(self.image, self.now_ms), SETTINGS))
        assert self.sessions.expired(self.image, self.now_ms) == []

    def fail_over(self) -> None:
        self.sessions = BrokerSessions(TIMEOUT_MS)
        self.sessions.take_over(self.image, self.now_ms)

    def alter_isr(self, number: int, members: set[int], *, stale: bool = False) -> None:
        """The leader, if it is up, takes in who has caught up; those get what was committed."""
        state = self.partition(number)
        if not state.has_leader or not self.machines[state.leader].is_up:
            return
        isr = [replica for replica in state.replicas if replica in members or replica == state.leader]
        joined = [BrokerState(replica, self.machines[replica].epoch) for replica in isr]
        wanted = RequestPartitionData(
            number, state.leader_epoch, new_isr_with_epochs=joined, partition_epoch=state.partition_epoch - stale
        )
        topic_id = self.image.topics_by_name["t"].topic_id
        epoch = self.machines[state.leader].epoch
        request = AlterPartitionRequest(state.leader, epoch, [RequestTopicData(topic_id, [wanted])])
        decision = alter_partition(self.image, request, SETTINGS)
        if stale:
            assert not decision.records
        if decision.records and state.leader in self.holders[number]:
            self.holders[number] |= {replica for replica in isr if self.machines[replica].is_up}
        self.joining = set(isr)
        self.apply(decision)
        self.joining = set()

    def move(self, number: int, target: list[int] | None) -> None:
        topics = [ReassignableTopic("t", [ReassignablePartition(number, target)])]
        request = AlterPartitionReassignmentsRequest(topics=topics)
        self.apply(alter_partition_reassignments(self.image, request, SETTINGS))

    def elect(self, number: int, kind: int) -> None:
        self.asked_for_unclean = kind == 1
        request = ElectLeadersRequest(kind, [TopicPartitions("t", [number])])
        self.apply(elect_leaders(self.image, request, SETTINGS))
        self.asked_for_unclean = False

    def rebalance(self) -> None:
        self.apply(plan_leader_rebalance(self.image, SETTINGS))

    def heal(self) -> None:
        """Everybody is back and catches up; then nothing may be left undone."""
        self.wait(TIMEOUT_MS)
        for number in BROKERS:
            self.start(number)
        for _ in range(4):
            for number in BROKERS:
                if self.machines[number].is_up:
                    self.beat(number)
                else:
                    self.wait(TIMEOUT_MS)
                    self.start(number)
        for number in PARTITIONS:
            if not self.partition(number).has_leader:
                self.elect(number, kind=1)
            for _ in range(3):
                self.alter_isr(number, set(BROKERS))
            state = self.partition(number)
            assert state.has_leader
            assert not state.is_reassigning
            assert set(state.isr) == set(state.replicas)
            assert not state.eligible_leader_replicas


NUMBERS = st.sampled_from(BROKERS)
PARTITION_NUMBERS = st.sampled_from(PARTITIONS)
STEPS = st.one_of(
    st.tuples(st.just("start"), NUMBERS),
    st.tuples(st.just("beat"), NUMBERS),
    st.tuples(st.just("stop"), NUMBERS),
    st.tuples(st.just("kill"), NUMBERS),
    st.tuples(st.just("wipe"), NUMBERS),
    st.tuples(st.just("wait"), st.sampled_from([10, 60, 100])),
    st.tuples(st.just("fail_over")),
    st.tuples(st.just("isr"), PARTITION_NUMBERS, st.sets(NUMBERS)),
    st.tuples(st.just("stale"), PARTITION_NUMBERS, st.sets(NUMBERS)),
    st.tuples(st.just("move"), PARTITION_NUMBERS, st.none() | st.lists(NUMBERS, min_size=1, max_size=3, unique=True)),
    st.tuples(st.just("elect"), PARTITION_NUMBERS, st.sampled_from([0, 1])),
    st.tuples(st.just("rebalance")),
)


def step(model: Model, name: str, *args: object) -> None:
    match name, args:
        case "start", (int(number),):
            model.start(number)
        case "beat", (int(number),):
            model.beat(number)
        case "stop", (int(number),):
            model.beat(number, wants_to_stop=True)
        case "kill", (int(number),):
            model.kill(number)
        case "wipe", (int(number),):
            model.kill(number, wipe=True)
        case "wait", (int(ms),):
            model.wait(ms)
        case "fail_over", ():
            model.fail_over()
        case "isr", (int(number), set(members)):
            model.alter_isr(number, members)
        case "stale", (int(number), set(members)):
            model.alter_isr(number, members, stale=True)
        case "move", (int(number), (list() | None) as target):
            model.move(number, target)
        case "elect", (int(number), int(kind)):
            model.elect(number, kind)
        case _:
            model.rebalance()


@settings(max_examples=300, deadline=None)
@given(
    min_insync=st.sampled_from([1, 2, 3]),
    uses_elr=st.booleans(),
    allows_unclean=st.booleans(),
    steps=st.lists(STEPS, max_size=60),
)
def test_any_history_keeps_the_promises(
    min_insync: int, uses_elr: bool, allows_unclean: bool, steps: list[tuple[object, ...]]
) -> None:
    model = Model(min_insync, uses_elr, allows_unclean)
    for name, *args in steps:
        step(model, str(name), *args)
    model.heal()
    again = ClusterImage()
    for record in model.log:
        again.replay(record, MetadataDelta())
    assert again.topics_by_name["t"].partitions == model.image.topics_by_name["t"].partitions
    assert again.brokers == model.image.brokers
