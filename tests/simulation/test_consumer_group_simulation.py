"""Lives of consumer groups in virtual time: members come, go, fall silent and change their minds, coordinators change.

After every step no partition is read by two consumers that the coordinator has not put out; left alone, the group
comes to rest with every partition read. A failing seed is named and replays exactly.
"""

import os
from random import Random

import pytest
from consumer_lab import ConsumerLab, LabConsumer
from group_lab import GROUP

from sskafka.groups.assignors import NOTHING
from sskafka.groups.consumer_group import ConsumerGroup
from sskafka.groups.group_settings import ConsumerTimings
from sskafka.model.errors import ErrorCode

TOPICS = {"orders": 5, "bills": 3, "clicks": 1}
STEPS = 60
SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else range(min(int(os.environ.get("SEEDS", "100")), 5_000))


class Life:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        timings = ConsumerTimings(assignment_interval_ms=self.random.choice([0, 1_000, 8_000]))
        self.lab = ConsumerLab(dict(TOPICS), consumer_timings=timings)
        self.consumers: dict[str, LabConsumer] = {}
        self.names = 0

    def step(self) -> None:
        often = [self.beat] * 4
        actions = [self.join, self.resubscribe, self.leave, self.die, self.wait, self.fail_over, self.lose_answer]
        action = self.random.choice([*often, *actions, self.grow])
        action()

    def one(self) -> LabConsumer | None:
        return self.random.choice(list(self.consumers.values())) if self.consumers else None

    def join(self) -> None:
        self.names += 1
        topics = self.random.sample(sorted(TOPICS), self.random.randint(1, 3))
        consumer = LabConsumer(self.lab, f"m{self.names}", *topics)
        assert consumer.join().code is ErrorCode.NONE
        self.consumers[consumer.member_id] = consumer

    def beat(self, consumer: LabConsumer | None = None) -> None:
        consumer = consumer or self.one()
        if consumer is not None and consumer.beat().code is not ErrorCode.NONE:
            consumer.owned = NOTHING  # put out: it must stop reading and join again
            assert consumer.join().code is ErrorCode.NONE

    def lose_answer(self) -> None:
        consumer = self.one()
        if consumer is not None:
            epoch, owned = consumer.epoch, consumer.owned
            consumer.beat()
            consumer.epoch, consumer.owned = epoch, owned
            consumer.has_missed_answer = True

    def resubscribe(self) -> None:
        consumer = self.one()
        if consumer is not None:
            consumer.topics = self.random.sample(sorted(TOPICS), self.random.randint(1, 3))
            if consumer.say(subscribed_topic_names=consumer.topics).code is not ErrorCode.NONE:
                consumer.join()

    def leave(self) -> None:
        consumer = self.one()
        if consumer is not None:
            consumer.leave()
            del self.consumers[consumer.member_id]

    def die(self) -> None:
        """Falls silent; it is the coordinator's part to notice. Nobody knows what it still reads."""
        consumer = self.one()
        if consumer is not None:
            del self.consumers[consumer.member_id]

    def wait(self) -> None:
        """Less than a session, in which everybody who lives heartbeats."""
        for _ in range(self.random.randint(1, 12)):
            self.lab.time.run_for(5_000)
            for consumer in list(self.consumers.values()):
                self.beat(consumer)
                self.check()

    def fail_over(self) -> None:
        self.lab.fail_over()

    def grow(self) -> None:
        counts = {name: topic.partition_count for name, topic in self.lab.topics.items()}
        counts[self.random.choice(sorted(counts))] += 1
        self.lab.set_topics(counts)

    def check(self) -> None:
        group = self.lab.shard.groups.get(GROUP)
        if not isinstance(group, ConsumerGroup):
            return
        readers: dict[tuple[bytes, int], str] = {}
        for consumer in self.consumers.values():
            if consumer.member_id in group.members:
                for partition in consumer.owned:
                    other = readers.setdefault(partition, consumer.member_id)
                    assert other == consumer.member_id, f"{partition} is read by {other} and {consumer.member_id}"

    def come_to_rest(self) -> None:
        for _ in range(20):
            self.lab.time.run_for(5_000)
            for consumer in list(self.consumers.values()):
                self.beat(consumer)
                self.check()
        group = self.lab.shard.groups.get(GROUP)
        if not self.consumers or not isinstance(group, ConsumerGroup):
            return
        assert set(group.members) == set(self.consumers)
        assert group.state_name == "Stable"
        wanted = {name for consumer in self.consumers.values() for name in consumer.topics}
        expected = {(topic.topic_id, i) for n, topic in self.lab.topics.items() if n in wanted for i in range(topic[1])}
        assert set().union(*(consumer.owned for consumer in self.consumers.values())) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_no_partition_has_two_readers_and_groups_come_to_rest(seed: int) -> None:
    life = Life(seed)
    for _ in range(STEPS):
        life.step()
        life.check()
    life.come_to_rest()
