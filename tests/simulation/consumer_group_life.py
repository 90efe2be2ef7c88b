"""Lives of consumer groups in virtual time: members come, go, fall silent and change their minds, coordinators change.

After every step no partition is read by two consumers that the coordinator has not put out; left alone, the group
comes to rest with every partition read. A failing seed is named and replays exactly.

With `is_sliced`, target assignments are computed in the background, a step now and then, whatever happens meanwhile:
members join, leave, fall silent, come back as static members and resubscribe; topics are created, deleted and extended;
the group is deleted and created again, or becomes a classic one for a while; another broker takes over, with or without
the last records of a target that was being written.
"""

from random import Random

import pytest
from consumer_lab import ConsumerLab, LabConsumer, topic_id
from group_lab import GROUP

from sskafka.groups import target_assignment, topic_changes
from sskafka.groups.assignors import NOTHING
from sskafka.groups.consumer_group import ConsumerGroup, Topic
from sskafka.groups.group_settings import ConsumerTimings
from sskafka.groups.members import STATIC_LEAVING_EPOCH
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.leave_group import MemberIdentity

TOPICS = {"orders": 5, "bills": 3, "clicks": 1}
PATTERNS = {".*": set(TOPICS), "orders|bills": {"orders", "bills"}, "c.*": {"clicks"}, "nothing.*": set()}
STEPS = 60


class Life:
    def __init__(self, seed: int, is_sliced: bool) -> None:
        self.random = Random(seed)
        timings = ConsumerTimings(assignment_interval_ms=self.random.choice([0, 1_000, 8_000]))
        self.lab = ConsumerLab(dict(TOPICS), consumer_timings=timings)
        self.is_sliced = is_sliced
        self.consumers: dict[str, LabConsumer] = {}
        self.names = 0
        self.installed = 0
        self._seen: tuple[object, int] = (None, 0)

    def run(self) -> None:
        for _ in range(STEPS):
            self.step()
            self.check()
        self.come_to_rest()

    def step(self) -> None:
        often = [self.beat] * 4
        actions = [self.join, self.resubscribe, self.leave, self.die, self.wait, self.fail_over, self.lose_answer]
        if self.is_sliced:
            often += [self.compute] * 6
            actions += [self.join_static, self.come_back, self.come_back, self.delete_topic, self.begin_again]
        action = self.random.choice([*often, *actions, self.grow])
        action()

    def one(self) -> LabConsumer | None:
        return self.random.choice(list(self.consumers.values())) if self.consumers else None

    # -- members

    def join(self, instance_id: str | None = None) -> None:
        self.names += 1
        topics = self.random.sample(sorted(TOPICS), self.random.randint(1, 3))
        consumer = LabConsumer(self.lab, f"m{self.names}", *topics, instance_id=instance_id)
        if self.is_sliced and self.random.random() < 0.4:
            consumer.topics, consumer.regex = [], self.random.choice(sorted(PATTERNS))
        assert consumer.join().code is ErrorCode.NONE
        self.consumers[consumer.member_id] = consumer

    def join_static(self) -> None:
        self.join(f"i{self.names}")

    def come_back(self) -> None:
        """A static member restarts: same instance id and subscription, new member id."""
        static = [consumer for consumer in self.consumers.values() if consumer.instance_id is not None]
        if not static:
            return
        consumer = self.random.choice(static)
        if consumer.leave(STATIC_LEAVING_EPOCH).code is not ErrorCode.NONE:
            self.rejoin(consumer)
            return
        del self.consumers[consumer.member_id]
        for _ in range(self.random.choice([0, 0, 1, 3])):
            self.compute()
        self.names += 1
        again = LabConsumer(
            self.lab, f"m{self.names}", *consumer.topics, instance_id=consumer.instance_id, regex=consumer.regex
        )
        assert again.join().code is ErrorCode.NONE
        self.consumers[again.member_id] = again

    def beat(self, consumer: LabConsumer | None = None) -> None:
        consumer = consumer or self.one()
        if consumer is not None and consumer.beat().code is not ErrorCode.NONE:
            self.rejoin(consumer)

    def rejoin(self, consumer: LabConsumer) -> None:
        """Put out: it must stop reading and join again. A static member has to release its instance id first."""
        consumer.owned = NOTHING
        code = consumer.join().code
        if code is ErrorCode.UNRELEASED_INSTANCE_ID:
            consumer.leave(STATIC_LEAVING_EPOCH)
            code = consumer.join().code
        assert code is ErrorCode.NONE, code

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
                self.rejoin(consumer)

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

    # -- time, brokers and topics

    def wait(self) -> None:
        """Less than a session, in which everybody who lives heartbeats."""
        for _ in range(self.random.randint(1, 12)):
            self.lab.time.run_for(5_000)
            for consumer in list(self.consumers.values()):
                self.beat(consumer)
                self.check()

    def fail_over(self) -> None:
        """Computations go on: they find out that their group is another one when they are finished."""
        self.lab.fail_over()

    def grow(self) -> None:
        name = self.random.choice(sorted(self.lab.topics))
        grown = self.lab.topics[name]
        self.lab.topics = {**self.lab.topics, name: Topic(grown.topic_id, grown.partition_count + 1)}

    def delete_topic(self) -> None:
        """Delete a topic, and create it again after a while: its id is another one."""
        gone = self.random.choice(sorted(self.lab.topics))
        count = self.lab.topics[gone].partition_count
        self.lab.topics = {name: topic for name, topic in self.lab.topics.items() if name != gone}
        for _ in range(self.random.randint(1, 6)):
            self.random.choice([self.beat, self.beat, self.compute])()
            self.check()
        self.names += 1
        self.lab.topics = {**self.lab.topics, gone: Topic(topic_id(f"{gone}{self.names}"), count)}

    def begin_again(self) -> None:
        """All members leave. The group is deleted, or becomes classic for a while. New members take the same epochs."""
        for consumer in list(self.consumers.values()):
            consumer.leave()
        self.consumers.clear()
        group = self.lab.shard.groups.get(GROUP)
        if isinstance(group, ConsumerGroup):
            for member in list(group.members.values()):
                self.lab.leave(MemberIdentity(member.member_id))
        if group is not None and self.random.random() < 0.6:
            self.lab.take(self.lab.shard.delete_group(GROUP))
        elif group is not None:
            joined = self.lab.join_fully()
            self.lab.time.run_for(10)
            self.lab.leave(MemberIdentity(joined.response.member_id))
        for _ in range(self.random.randint(1, 3)):
            self.join()

    # -- target assignments

    def compute(self) -> None:
        """Resolve patterns, or go on with the target assignment, a few steps."""
        if self.random.random() < 0.4:
            self.lab.finish_patterns()
        for _ in range(self.random.randint(1, 8)):
            self.compute_step()

    def compute_step(self) -> None:
        """Take one step. Sometimes the broker stops while it writes the result."""
        before = len(self.lab.log)
        group = self.lab.shard.groups.get(GROUP)
        epoch = group.target_epoch if isinstance(group, ConsumerGroup) else 0
        self.lab.step_targets()
        if isinstance(group, ConsumerGroup) and group.target_epoch > epoch:
            self.installed += 1
            if self.random.random() < 0.1:
                del self.lab.log[self.random.randint(before, len(self.lab.log) - 1) :]
                self.lab.fail_over()

    # -- invariants

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
        assert group.target_epoch <= group.epoch, "the target is ahead of the group"
        assert set(group.target) <= set(group.members), "the target has members that the group does not have"
        before, epoch = self._seen
        assert before is not group or epoch <= group.target_epoch, "the target goes back"
        self._seen = group, group.target_epoch

    def come_to_rest(self) -> None:
        for _ in range(20):
            self.lab.time.run_for(5_000)
            for consumer in list(self.consumers.values()):
                self.beat(consumer)
                self.lab.finish_patterns()
                self.lab.finish_targets()
                self.check()
        group = self.lab.shard.groups.get(GROUP)
        if not self.consumers or not isinstance(group, ConsumerGroup):
            return
        assert set(group.members) == set(self.consumers), "members of the group"
        assert group.state_name == "Stable", f"the group is {group.state_name}"
        wanted = {name for one in self.consumers.values() for name in {*one.topics, *PATTERNS.get(one.regex or "", ())}}
        expected = {(topic.topic_id, i) for n, topic in self.lab.topics.items() if n in wanted for i in range(topic[1])}
        read = set().union(*(consumer.owned for consumer in self.consumers.values()))
        assert read == expected, "partitions are read by nobody"


def run_seed(seed: int, is_sliced: bool) -> Life:
    """Run a life. With `is_sliced`, no group is small and no pattern is quick."""
    with pytest.MonkeyPatch.context() as patch:
        if is_sliced:
            patch.setattr(target_assignment, "AT_ONCE_MAX", -1)
            patch.setattr(topic_changes, "AT_ONCE_NS", -1)
        life = Life(seed, is_sliced)
        life.run()
    return life
