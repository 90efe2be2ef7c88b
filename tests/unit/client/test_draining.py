import pytest

from sskafka.client.draining import NoBrokerLeftError, plan_drain
from sskafka.client.metadata import PartitionView, TopicView
from sskafka.model.ids import ZERO_UUID, TopicPartition


def topic(name: str, *replicas: tuple[int, ...]) -> TopicView:
    partitions = {number: PartitionView(number, at[0], 0, at, at, (), 0) for number, at in enumerate(replicas)}
    return TopicView(name, ZERO_UUID, False, 0, partitions)


def test_only_partitions_of_the_broker_move_and_keep_their_order() -> None:
    plan = plan_drain([topic("a", (3, 1), (1, 2), (2, 3))], 3, {1: None, 2: None, 4: None})
    assert plan == {TopicPartition("a", 0): (4, 1), TopicPartition("a", 2): (2, 4)}


def test_another_rack_is_preferred_then_the_broker_with_the_fewest_replicas() -> None:
    racks = {1: "a", 2: "b", 1001: "a", 1002: "b"}
    assert plan_drain([topic("t", (9, 1))], 9, racks)[TopicPartition("t", 0)] == (2, 1)
    plan = plan_drain([topic("t", (9,), (9,), (9,), (9,))], 9, racks)
    assert sorted(replicas[0] for replicas in plan.values()) == [1, 2, 1001, 1002]


def test_a_partition_that_is_everywhere_cannot_move() -> None:
    with pytest.raises(NoBrokerLeftError, match="a-0 has a replica on every other broker"):
        plan_drain([topic("a", (1, 2))], 2, {1: None})


def test_such_a_replica_is_dropped_if_that_is_allowed_and_another_is_left() -> None:
    plan = plan_drain([topic("a", (2, 1), (1, 2))], 2, {1: None}, allow_fewer=True)
    assert plan == {TopicPartition("a", 0): (1,), TopicPartition("a", 1): (1,)}
    with pytest.raises(NoBrokerLeftError):
        plan_drain([topic("a", (2,))], 2, {}, allow_fewer=True)
