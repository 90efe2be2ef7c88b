from metadata_clusters import SETTINGS, cluster, decided, replayed, with_topic
from partition_changes import fence, unfence

from sskafka.metadata.elect_leaders import plan_leader_rebalance
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import PartitionChangeRecord
from sskafka.model.settings import Settings


def drifted() -> ClusterImage:
    """Broker 1 was down; it is in sync again and leads no partition."""
    image = with_topic(cluster(3), "t", 12, 3)
    fence(image, 1)
    unfence(image, 1)
    topic = image.topics_by_name["t"]
    replayed(image, [PartitionChangeRecord(number, topic.topic_id, isr=[1, 2, 3]) for number in topic.partitions])
    return image


def misled(image: ClusterImage) -> int:
    return sum(state.leader != state.preferred_leader for _, _, state in image.partitions())


def test_leadership_returns_to_the_preferred_replicas() -> None:
    image = drifted()
    assert misled(image) == 4
    assert decided(image, plan_leader_rebalance(image, SETTINGS)) is False
    assert misled(image) == 0
    assert list(plan_leader_rebalance(image, SETTINGS).records) == []


def test_a_single_partition_is_rebalanced_too() -> None:
    """Apache Kafka 4 no longer has leader.imbalance.per.broker.percentage."""
    image = with_topic(cluster(3), "t", 60, 3)
    topic = image.topics_by_name["t"]
    state = topic.partitions[7]
    replayed(image, [PartitionChangeRecord(7, topic.topic_id, leader=state.replicas[1])])
    assert misled(image) == 1
    assert decided(image, plan_leader_rebalance(image, SETTINGS)) is False
    assert misled(image) == 0


def test_elections_are_limited_per_step() -> None:
    image = drifted()
    assert decided(image, plan_leader_rebalance(image, SETTINGS, elections_max=3)) is True
    assert misled(image) == 1
    assert decided(image, plan_leader_rebalance(image, SETTINGS, elections_max=3)) is False
    assert misled(image) == 0


def test_unavailable_preferred_replicas_are_skipped() -> None:
    image = with_topic(cluster(3), "t", 12, 3)
    fence(image, 1)
    assert list(plan_leader_rebalance(image, SETTINGS).records) == []
    unfence(image, 1)
    assert list(plan_leader_rebalance(image, SETTINGS).records) == []


def test_rebalancing_can_be_disabled() -> None:
    off = Settings.resolve(overrides={"auto.leader.rebalance.enable": "false"})
    assert list(plan_leader_rebalance(drifted(), off).records) == []
