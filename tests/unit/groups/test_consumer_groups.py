"""Consumer groups (KIP-848) in virtual time: epochs, reconciliation, sessions, static members, patterns."""

import pytest
from consumer_lab import REBALANCE_MS, ConsumerLab, LabConsumer, settle, topic_id

from sskafka.groups import consumer_requests
from sskafka.groups.group import EventKind
from sskafka.model.errors import ErrorCode


@pytest.fixture
def lab() -> ConsumerLab:
    return ConsumerLab()


def test_the_first_member_gets_everything(lab: ConsumerLab) -> None:
    alice = LabConsumer(lab, "alice")
    answer = alice.join().response
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("alice", 2, 5_000)
    assert alice.numbers == [0, 1, 2, 3]
    assert lab.consumers.state_name == "Stable"


def test_a_partition_is_given_only_once_its_owner_has_let_go(lab: ConsumerLab) -> None:
    alice, bob = LabConsumer(lab, "alice"), LabConsumer(lab, "bob")
    alice.join()
    bob.join()
    assert bob.owned == frozenset()
    assert bob.epoch == 3
    assert lab.consumers.state_name == "Reconciling"
    told = alice.beat().response
    assert told.member_epoch == 2, "who has to give up something stays in its epoch"
    assert len(alice.numbers) == 2
    bob.beat()
    assert bob.owned == frozenset(), "alice has not said yet that it let go"
    assert alice.beat().response.member_epoch == 3
    bob.beat()
    assert sorted(alice.numbers + bob.numbers) == [0, 1, 2, 3]
    assert lab.consumers.state_name == "Stable"


def test_everything_survives_a_new_coordinator(lab: ConsumerLab) -> None:
    alice, bob = LabConsumer(lab, "alice"), LabConsumer(lab, "bob")
    alice.join()
    bob.join()
    settle(alice, bob)
    before = lab.consumers.members
    lab.fail_over()
    assert lab.consumers.members == before
    settle(alice, bob)
    assert sorted(alice.numbers + bob.numbers) == [0, 1, 2, 3]


def test_a_lost_answer_is_repeated(lab: ConsumerLab) -> None:
    alice, bob = LabConsumer(lab, "alice"), LabConsumer(lab, "bob")
    alice.join()
    bob.join()
    alice.beat()
    owned = alice.owned
    assert alice.beat().response.member_epoch == 3
    alice.epoch, alice.owned = 2, owned  # as if that answer had not come
    assert alice.beat().response.member_epoch == 3


@pytest.mark.parametrize(("epoch", "error"), [(7, ErrorCode.FENCED_MEMBER_EPOCH), (0, ErrorCode.INVALID_REQUEST)])
def test_a_wrong_epoch_is_refused(lab: ConsumerLab, epoch: int, error: ErrorCode) -> None:
    alice = LabConsumer(lab, "alice")
    alice.join()
    alice.epoch = epoch
    assert alice.beat().code is error


def test_who_is_not_known_must_join(lab: ConsumerLab) -> None:
    alice, bob = LabConsumer(lab, "alice"), LabConsumer(lab, "bob")
    bob.epoch = 1
    assert bob.beat().code is ErrorCode.GROUP_ID_NOT_FOUND
    alice.join()
    assert bob.beat().code is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_leaves_frees_its_partitions(lab: ConsumerLab) -> None:
    alice, bob = LabConsumer(lab, "alice"), LabConsumer(lab, "bob")
    alice.join()
    bob.join()
    settle(alice, bob)
    assert bob.leave().response.member_epoch == -1
    settle(alice)
    assert alice.numbers == [0, 1, 2, 3]


def test_who_is_silent_for_a_session_is_put_out(lab: ConsumerLab) -> None:
    alice, bob = LabConsumer(lab, "alice"), LabConsumer(lab, "bob")
    alice.join()
    bob.join()
    settle(alice, bob)
    for _ in range(10):
        lab.time.run_for(5_000)
        alice.beat()
    assert list(lab.consumers.members) == ["alice"]
    settle(alice)
    assert alice.numbers == [0, 1, 2, 3]
    assert EventKind.TIMED_OUT in [event.kind for event in lab.consumers.timeline]
    assert bob.beat().code is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_keeps_what_it_has_to_give_up_is_put_out(lab: ConsumerLab) -> None:
    alice, bob = LabConsumer(lab, "alice"), LabConsumer(lab, "bob")
    alice.join()
    bob.join()
    everything = alice.owned
    for _ in range(REBALANCE_MS // 5_000 + 1):
        alice.owned = everything
        alice.beat()
        lab.time.run_for(5_000)
        bob.beat()
    assert list(lab.consumers.members) == ["bob"]
    settle(bob)
    assert bob.numbers == [0, 1, 2, 3]


def test_an_empty_group_keeps_no_timers(lab: ConsumerLab) -> None:
    alice = LabConsumer(lab, "alice")
    alice.join()
    alice.leave()
    assert [key for key in lab.timers.pending if key != "expiry"] == []


# -- static members


def test_a_static_member_finds_its_partitions_again(lab: ConsumerLab) -> None:
    one, bob = LabConsumer(lab, "one", instance_id="i"), LabConsumer(lab, "bob")
    one.join()
    bob.join()
    settle(one, bob)
    numbers, epoch = one.numbers, lab.consumers.epoch
    assert one.leave(-2).response.member_epoch == -2
    again = LabConsumer(lab, "two", instance_id="i")
    assert again.join().code is ErrorCode.NONE
    settle(again, bob)
    assert again.numbers == numbers
    assert lab.consumers.epoch == epoch, "nobody else was disturbed"
    assert sorted(lab.consumers.members) == ["bob", "two"]


def test_an_instance_in_use_is_not_taken_over(lab: ConsumerLab) -> None:
    LabConsumer(lab, "one", instance_id="i").join()
    assert LabConsumer(lab, "two", instance_id="i").join().code is ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_replaced_instance_is_fenced(lab: ConsumerLab) -> None:
    one = LabConsumer(lab, "one", instance_id="i")
    one.join()
    one.leave(-2)
    LabConsumer(lab, "two", instance_id="i").join()
    one.epoch = 1
    assert one.beat().code is ErrorCode.FENCED_INSTANCE_ID


# -- subscriptions


def test_a_changed_subscription_changes_the_assignment() -> None:
    lab = ConsumerLab({"orders": 2, "bills": 3})
    alice = LabConsumer(lab, "alice")
    alice.join()
    alice.say(subscribed_topic_names=["bills"], topic_partitions=None)
    settle(alice)
    assert alice.owned == {(topic_id("bills"), index) for index in range(3)}


def test_new_partitions_are_found(lab: ConsumerLab) -> None:
    alice = LabConsumer(lab, "alice")
    alice.join()
    lab.set_topics({"orders": 6})
    settle(alice)
    assert alice.numbers == [0, 1, 2, 3, 4, 5]


def test_a_pattern_finds_topics_that_come_later() -> None:
    lab = ConsumerLab({"orders-a": 1, "bills": 1, "__consumer_offsets": 1})
    alice = LabConsumer(lab, "alice", regex="orders-.*|__.*")
    alice.join()
    internal = (topic_id("__consumer_offsets"), 0)
    assert alice.owned == {(topic_id("orders-a"), 0), internal}, "internal topics are matched as others are"
    lab.set_topics({"orders-a": 1, "orders-b": 1})
    settle(alice)
    assert alice.owned == {(topic_id("orders-a"), 0), (topic_id("orders-b"), 0)}
    lab.fail_over()
    assert lab.consumers.is_subscribed("orders-b")


def test_a_bad_pattern_is_refused_and_leaves_nothing_behind(lab: ConsumerLab) -> None:
    assert LabConsumer(lab, "alice", regex="orders(").join().code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert not lab.shard.groups
    assert not lab.log


def test_an_unknown_assignor_is_refused(lab: ConsumerLab) -> None:
    assert LabConsumer(lab, "alice", assignor="best").join().code is ErrorCode.UNSUPPORTED_ASSIGNOR


def test_members_choose_the_assignor() -> None:
    lab = ConsumerLab({"orders": 4, "bills": 4})
    members = [LabConsumer(lab, name, "orders", "bills", assignor="range") for name in ("a", "b")]
    for member in members:
        member.join()
    settle(*members)
    assert members[0].owned == {(topic_id(name), index) for name in ("orders", "bills") for index in (0, 1)}


def test_a_full_group_takes_nobody() -> None:
    lab = ConsumerLab(consumer_group_size_max=1)
    LabConsumer(lab, "alice").join()
    assert LabConsumer(lab, "bob").join().code is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_how_long_a_rebalance_took_is_told(lab: ConsumerLab) -> None:
    alice, bob = LabConsumer(lab, "alice"), LabConsumer(lab, "bob")
    alice.join()
    bob.join()
    lab.time.run_for(700)
    settle(alice, bob)
    completed = [event for event in lab.consumers.timeline if event.kind is EventKind.REBALANCE_COMPLETED]
    assert [event.duration_ms for event in completed] == [0, 700]


def test_heartbeats_that_say_nothing_new_do_not_look_at_everybody(
    lab: ConsumerLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large group has as many heartbeats as members: each must cost the same, however many there are."""
    alice, bob = LabConsumer(lab, "alice"), LabConsumer(lab, "bob", regex="ord.*")
    alice.join()
    bob.join()
    settle(alice, bob)
    looks: list[object] = []
    monkeypatch.setattr(consumer_requests, "resolved_records", lambda *args: looks.append(args) or [])
    settle(alice, bob)
    assert not looks
    lab.set_topics({"orders": 6})
    alice.beat()
    assert len(looks) == 1


def test_subscribed_topics_follow_members_and_patterns() -> None:
    lab = ConsumerLab({"orders": 4, "parcels": 1})
    alice, bob = LabConsumer(lab, "alice"), LabConsumer(lab, "bob", regex="par.*")
    alice.join()
    assert lab.consumers.subscribed_topics == {"orders"}
    bob.join()
    assert lab.consumers.subscribed_topics == {"orders", "parcels"}
    alice.say(subscribed_topic_names=["parcels"])
    assert lab.consumers.subscribed_topics == {"parcels"}
    bob.leave()
    alice.leave()
    assert lab.consumers.subscribed_topics == frozenset()
