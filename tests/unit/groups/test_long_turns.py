"""No turn in which a group with 10,000 partitions decides takes more than some milliseconds.

A turn is a heartbeat with its records, their replay and its response, or a step of a target assignment, or its
installation, or a step of loading its records. Times are CPU times, and the best of some tries: a busy machine makes
single ones longer. One partition each of 10,000 topics once took 60 to 165 ms in one turn.
"""

import gc
from collections.abc import Callable
from time import thread_time
from types import MappingProxyType

import pytest
from consumer_lab import ConsumerLab, LabConsumer
from group_lab import Asked

from sskafka.coordination.loading import UnreadableRecords, replay_batch
from sskafka.coordination.log import batch_of
from sskafka.groups import consumer_records
from sskafka.groups.consumer_group import ConsumerGroup, Topic
from sskafka.groups.consumer_heartbeat import Heartbeat, LongFields, read_long_fields
from sskafka.groups.log_records import GroupRecord
from sskafka.groups.members import Client, ConsumerMember
from sskafka.groups.partition_set import PartitionSet
from sskafka.model.computation import Computation
from sskafka.records.batch import read_header
from sskafka.records.compression import Compression
from sskafka.servers.kafka.frames import response_frame
from sskafka.wire.apis import ApiKey
from sskafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

PARTITIONS = 10_000
TURN_MS_MAX = {1: 15, 100: 15, 10_000: 35}
"""By number of topics. On a machine with nothing else to do, the longest turns take less than half of that."""
STEP_MS_MAX = 15
TRIES = 3


class TimedLab(ConsumerLab):
    """Notes how long each turn takes."""

    def __init__(self, topic_count: int) -> None:
        super().__init__()
        per_topic = PARTITIONS // topic_count
        self.topics = {
            f"topic-{number:05}": Topic((number * 7919 % 1_000_003).to_bytes(4) * 4, per_topic)
            for number in range(topic_count)
        }
        self.turns_ms: list[float] = []
        self.steps_ms: list[float] = []

    def timed(self, turn: Callable[[], None], times_ms: list[float]) -> None:
        began = thread_time()
        turn()
        times_ms.append(1000 * (thread_time() - began))

    def heartbeat(self, request: ConsumerGroupHeartbeatRequest, version: int = 1) -> Asked:
        heartbeat = Heartbeat(request, version, Client(), None, self._in_timed_steps(read_long_fields(request)))
        asked: list[Asked] = []

        def turn() -> None:
            asked.append(self.ask(lambda _: self.shard.consumer.heartbeat(heartbeat, self.time.now_ms())))
            response_frame(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, 1, asked[0].response)

        self.timed(turn, self.turns_ms)
        return asked[0]

    def _in_timed_steps(self, steps: Computation[LongFields]) -> LongFields:
        read: list[LongFields] = []

        def step() -> None:
            try:
                next(steps)
            except StopIteration as stop:
                read.append(stop.value)

        while not read:
            self.timed(step, self.steps_ms)
        return read[0]

    def assign(self) -> None:
        while self.targets:
            self.timed(self.step_targets, self.steps_ms)


def run(topic_count: int, member_count: int, assignor: str) -> TimedLab:
    """Let members join one after the other until all have their share, and let one leave."""
    lab = TimedLab(topic_count)
    members = [LabConsumer(lab, f"m{number}", *lab.topics, assignor=assignor) for number in range(member_count)]
    for member in members:
        member.join()
        lab.assign()
    for _ in range(4):
        for member in members:
            member.beat()
            lab.assign()
    assert sum(len(member.owned) for member in members) == PARTITIONS
    members[0].leave()
    for _ in range(2):
        for member in members[1:]:
            member.beat()
            lab.assign()
    return lab


@pytest.mark.parametrize(
    ("topic_count", "assignor"), [(1, "uniform"), (100, "uniform"), (10_000, "uniform"), (10_000, "range")]
)
@pytest.mark.parametrize("member_count", [1, 2, 10])
def test_no_turn_of_a_group_with_10_000_partitions_is_long(topic_count: int, member_count: int, assignor: str) -> None:
    gc.collect()
    gc.disable()
    try:
        labs = [run(topic_count, member_count, assignor) for _ in range(TRIES)]
    finally:
        gc.enable()
    assert min(max(lab.turns_ms) for lab in labs) < TURN_MS_MAX[topic_count]
    assert min(max(lab.steps_ms, default=0) for lab in labs) < STEP_MS_MAX


# -- loading


def long_records() -> list[GroupRecord]:
    """Return records of a member with one partition each of 10,000 topics."""
    partitions = PartitionSet.of(((number * 7919 % 1_000_003).to_bytes(4) * 4, 0) for number in range(PARTITIONS))
    names = frozenset(f"topic-{number:05}" for number in range(PARTITIONS))
    member = ConsumerMember("m", topic_names=names, assigned=partitions, epoch=3)
    epochs = MappingProxyType({3: partitions})
    return [
        consumer_records.epoch_record("g", 3, 0),
        consumer_records.member_record("g", member),
        consumer_records.target_record("g", "m", partitions),
        consumer_records.current_record("g", member._replace(assignment_epochs=epochs)),
    ]


def load(records: list[GroupRecord]) -> list[float]:
    """Load the records as another broker would. Return how long each step takes."""
    lab = ConsumerLab()
    encoded = [lab.shard.encode(record) for record in records]
    batch = bytes(batch_of(encoded, 0, Compression.NONE, None, False))
    unreadable = UnreadableRecords(0)
    steps_ms: list[float] = []
    steps = replay_batch(lab.shard, batch, read_header(batch), 0, unreadable)
    is_over = False
    while not is_over:
        began = thread_time()
        is_over = next(steps, steps) is steps
        steps_ms.append(1000 * (thread_time() - began))
    group = lab.shard.groups["g"]
    assert isinstance(group, ConsumerGroup)
    assert not unreadable.count
    assert group.members["m"].assigned == group.target["m"] == records[2].kept
    assert len(group.members["m"].topic_names) == PARTITIONS
    return steps_ms


def test_records_with_10_000_topics_are_loaded_in_steps() -> None:
    """Each of them once took 20 to 35 ms in one turn."""
    records = long_records()
    load(records)  # compiles the decoders
    gc.collect()
    gc.disable()
    try:
        tries = [load(records) for _ in range(TRIES)]
    finally:
        gc.enable()
    assert min(max(steps_ms) for steps_ms in tries) < STEP_MS_MAX, tries
