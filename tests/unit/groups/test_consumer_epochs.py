"""When the epoch of a consumer group increases, and when its target assignment follows, as in Apache Kafka 4.3."""

import pytest
from consumer_lab import REBALANCE_MS, ConsumerLab, LabConsumer, settle, topic_id

from sskafka.groups.group_settings import ConsumerTimings
from sskafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

INTERVAL_MS = 1_000


def epochs(lab: ConsumerLab) -> tuple[int, int, str]:
    group = lab.consumers
    return group.epoch, group.target_epoch, group.state_name


@pytest.fixture
def lab() -> ConsumerLab:
    return ConsumerLab({"orders": 4, "bills": 2})


@pytest.fixture
def batching() -> ConsumerLab:
    lab = ConsumerLab({"orders": 4, "bills": 2}, consumer_timings=ConsumerTimings(assignment_interval_ms=INTERVAL_MS))
    lab.time.run_for(1)
    return lab


# -- the group's epoch


def test_the_first_subscription_begins_epoch_two(lab: ConsumerLab) -> None:
    alice = LabConsumer(lab, "alice")
    alice.join()
    assert (alice.epoch, *epochs(lab)) == (2, 2, 2, "Stable")


@pytest.mark.parametrize("subscription", [{"subscribed_topic_names": []}, {"subscribed_topic_regex": "nothing.*"}])
def test_who_reads_nothing_joins_in_epoch_one(lab: ConsumerLab, subscription: dict[str, object]) -> None:
    request = ConsumerGroupHeartbeatRequest("g", "m", 0, rebalance_timeout_ms=REBALANCE_MS, topic_partitions=[])
    for name, value in subscription.items():
        setattr(request, name, value)
    assert lab.heartbeat(request).response.member_epoch == 1
    lab.fail_over()
    assert epochs(lab) == (1, 1, "Stable")


def test_an_unknown_topic_is_a_subscription_too(lab: ConsumerLab) -> None:
    nobody = LabConsumer(lab, "nobody", "unknown")
    nobody.join()
    assert nobody.epoch == 2


def test_what_is_no_subscription_leaves_the_epoch_alone(lab: ConsumerLab) -> None:
    alice = LabConsumer(lab, "alice")
    alice.join()
    alice.say(server_assignor="range")
    alice.say(rebalance_timeout_ms=77)
    alice.say(rack_id="rack")
    alice.join()
    assert epochs(lab) == (2, 2, "Stable")


def test_a_pattern_that_others_have_already_begins_an_epoch(lab: ConsumerLab) -> None:
    LabConsumer(lab, "alice", regex="ord.*").join()
    assert lab.consumers.epoch == 2
    LabConsumer(lab, "bob", regex="ord.*").join()
    assert lab.consumers.epoch == 3


def test_topics_that_grow_begin_an_epoch_with_the_next_heartbeat(lab: ConsumerLab) -> None:
    alice = LabConsumer(lab, "alice")
    alice.join()
    lab.set_topics({"orders": 5, "bills": 2})
    lab.set_topics({"orders": 6, "bills": 2})
    assert epochs(lab) == (2, 2, "Stable")
    alice.beat()
    assert epochs(lab) == (3, 3, "Stable"), "two changes, one epoch"


def test_who_leaves_begins_an_epoch_and_the_target_follows_with_a_heartbeat(lab: ConsumerLab) -> None:
    alice, bob = LabConsumer(lab, "alice"), LabConsumer(lab, "bob")
    alice.join()
    bob.join()
    settle(alice, bob)
    bob.leave()
    assert epochs(lab) == (4, 3, "Assigning")
    alice.beat()
    assert epochs(lab) == (4, 4, "Stable")
    assert alice.numbers == [0, 1, 2, 3]


# -- the assignment interval


def test_who_joins_within_the_interval_waits_for_the_next_assignment(batching: ConsumerLab) -> None:
    alice, bob = LabConsumer(batching, "alice"), LabConsumer(batching, "bob")
    alice.join()
    answer = bob.join().response
    assert (answer.member_epoch, answer.assignment.topic_partitions) == (2, [])
    assert epochs(batching) == (3, 2, "Assigning")
    batching.time.run_for(INTERVAL_MS - 1)
    bob.beat()
    assert bob.epoch == 2
    batching.time.run_for(1)
    bob.beat()
    assert (bob.epoch, *epochs(batching)) == (3, 3, 3, "Reconciling")


def test_the_interval_outlives_the_coordinator(batching: ConsumerLab) -> None:
    alice, bob = LabConsumer(batching, "alice"), LabConsumer(batching, "bob")
    alice.join()
    batching.fail_over()
    bob.join()
    assert epochs(batching)[:2] == (3, 2)


def test_topics_that_are_no_longer_wanted_are_given_up_within_the_interval(batching: ConsumerLab) -> None:
    alice = LabConsumer(batching, "alice", "orders", "bills")
    alice.join()
    answer = alice.say(subscribed_topic_names=["bills"]).response
    assert answer.member_epoch == 2, "there is no new target yet"
    assert alice.owned == {(topic_id("bills"), index) for index in range(2)}
    member = batching.consumers.members["alice"]
    assert member.pending_revocation == {(topic_id("orders"), index) for index in range(4)}
    alice.beat()
    batching.time.run_for(INTERVAL_MS)
    alice.beat()
    assert (alice.epoch, epochs(batching)[2]) == (3, "Stable")


def test_a_target_older_than_the_subscription_gives_nothing_that_is_not_wanted(batching: ConsumerLab) -> None:
    alice, bob = LabConsumer(batching, "alice", "orders", "bills"), LabConsumer(batching, "bob", "bills")
    alice.join()
    bob.join()
    batching.time.run_for(INTERVAL_MS)
    bob.beat()
    assert bob.owned == frozenset(), "alice still has them"
    bob.say(subscribed_topic_names=["orders"])
    alice.beat()
    alice.beat()
    bob.beat()
    assert (topic_id("bills"), 0) not in bob.owned


# -- what is told


def test_an_assignment_is_told_when_it_changes_or_when_everything_is_said(lab: ConsumerLab) -> None:
    alice = LabConsumer(lab, "alice")
    alice.join()
    assert alice.say(topic_partitions=[]).response.assignment is None
    full = alice.say(subscribed_topic_names=["orders"], rebalance_timeout_ms=REBALANCE_MS, topic_partitions=[])
    assert full.response.assignment is not None
