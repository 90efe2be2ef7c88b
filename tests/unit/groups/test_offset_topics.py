"""Offsets are found by their topic without a search, and checked for expiry some groups at a time."""

from random import Random

from consumer_lab import ConsumerLab
from group_lab import GroupLab

from sskafka.groups import shard
from sskafka.groups.log_records import OffsetRecord
from sskafka.groups.offsets import CommittedOffset, OffsetStore
from sskafka.model.ids import TopicPartition

GROUPS, TOPICS = ["g1", "g2", "g3"], ["a", "b", "c"]


def test_topics_and_their_groups_are_those_of_the_offsets() -> None:
    for seed in range(60):
        random, store = Random(seed), OffsetStore()
        for _ in range(120):
            group, partition = random.choice(GROUPS), TopicPartition(random.choice(TOPICS), random.randint(0, 1))
            match random.randint(0, 5):
                case 0 | 1:
                    store.replay(group, partition, CommittedOffset(1), -1)
                case 2:
                    store.replay(group, partition, CommittedOffset(2), random.randint(1, 3))
                case 3 | 4:
                    store.replay(group, partition, None, -1)
                case 5:
                    store.end_transaction(random.randint(1, 3), random.random() < 0.5)
            found = {
                topic: {name for name in GROUPS if any(each.topic == topic for each in store.partitions_of(name))}
                for topic in TOPICS
            }
            assert store.topics() == {topic for topic, groups in found.items() if groups}
            for topic in TOPICS:
                assert store.groups_of([topic]) == found[topic]
            assert store.groups_of(TOPICS) == set().union(*found.values())


def test_only_groups_with_offsets_of_a_deleted_topic_are_looked_at() -> None:
    lab = GroupLab()
    for number in range(100):
        lab.commit(1, topic=f"t{number % 10}", group_id=f"g{number}")
    assert not lab.shard.topics_deleted(["unknown"]).records
    found = lab.shard.topics_deleted(["t3", "t4"]).records
    assert {record.group_id for record in found} == {f"g{number}" for number in range(100) if number % 10 in {3, 4}}
    missing = lab.shard.topics_missing({f"t{number}" for number in range(9)}).records
    assert {record.group_id for record in missing} == {f"g{number}" for number in range(9, 100, 10)}


def test_expiry_looks_at_some_groups_a_turn_and_goes_on_soon() -> None:
    lab = ConsumerLab(offsets_retention_ms=1_000, retention_check_interval_ms=60_000)
    lab.take(lab.shard.start(lab.time.now_ms()))
    groups = 3 * shard.EXPIRY_LOOKS // 2
    for number in range(groups):
        record = OffsetRecord(f"g{number}", TopicPartition("t", 0), CommittedOffset(1, commit_timestamp_ms=0))
        lab.shard.replay(record, None)
    lab.pass_time(60_000)
    left = len(lab.shard.groups)
    assert groups - shard.EXPIRY_LOOKS <= left < groups, "two looks a group"
    lab.pass_time(20 * shard.EXPIRY_PAUSE_MS)
    assert not lab.shard.groups
    lab.commit(1, topic="t", group_id="late")
    lab.pass_time(59_000)
    assert lab.shard.groups, "the next check is after the interval"
    lab.pass_time(61_000)
    assert not lab.shard.groups
