"""Decisions about groups change no logged state; replaying their records does, on this broker and on others."""

from typing import Any

from consumer_lab import REBALANCE_MS, ConsumerLab, LabConsumer, settle
from group_lab import GROUP, GroupLab

from sskafka.groups.classic_group import ClassicGroup, State
from sskafka.groups.consumer_group import ConsumerGroup
from sskafka.groups.consumer_heartbeat import Heartbeat
from sskafka.groups.members import Client
from sskafka.model.coordination import CoordinatorResult
from sskafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def kept(group: ConsumerGroup) -> tuple[object, ...]:
    """What the log keeps of it, and what follows from that."""
    return (
        *(group.epoch, group.metadata_hash, group.target_epoch, group.assigned_at_ms),
        *(dict(group.target), dict(group.members), dict(group.static_members), dict(group.regex_topics)),
        group._owned.frozen(),
    )


def joining(lab: ConsumerLab, member_id: str) -> CoordinatorResult[Any, Any]:
    request = ConsumerGroupHeartbeatRequest(
        GROUP,
        member_id,
        0,
        rebalance_timeout_ms=REBALANCE_MS,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    return lab.shard.consumer.heartbeat(Heartbeat(request, 1, Client("client")), lab.time.now_ms())


def test_a_heartbeat_that_is_not_replayed_has_changed_nothing() -> None:
    lab = ConsumerLab()
    assert joining(lab, "alice").records
    assert GROUP not in lab.shard.groups
    alice = LabConsumer(lab, "alice")
    alice.join()
    settle(alice)
    before = kept(lab.consumers)
    decision = joining(lab, "bob")
    assert kept(lab.consumers) == before
    lab.take(decision)
    assert lab.consumers.members.keys() == {"alice", "bob"}


def test_leaving_and_expiring_change_nothing_until_they_are_replayed() -> None:
    lab = ConsumerLab()
    alice, bob = LabConsumer(lab, "alice"), LabConsumer(lab, "bob")
    alice.join()
    bob.join()
    settle(alice, bob)
    before = kept(lab.consumers)
    assert lab.shard.consumer.expire(GROUP, "bob", "silent", lab.time.now_ms()).records
    assert kept(lab.consumers) == before


def test_the_next_broker_knows_what_the_one_that_decided_knew() -> None:
    lab = ConsumerLab({"orders": 4, "returns": 2})
    alice, bob = LabConsumer(lab, "alice"), LabConsumer(lab, "bob", regex="re.*", instance_id="i")
    alice.join()
    bob.join()
    settle(alice, bob)
    known = kept(lab.consumers)
    lab.fail_over()
    assert kept(lab.consumers) == known


def test_a_heartbeat_without_news_copies_nothing() -> None:
    lab = ConsumerLab()
    alice = LabConsumer(lab, "alice")
    alice.join()
    settle(alice)
    group = lab.consumers
    group.copy = None  # type: ignore[method-assign, assignment]
    settle(alice)


def test_a_classic_group_becomes_a_consumer_group_with_the_replay() -> None:
    lab = ConsumerLab()
    lab.commit(5)
    classic = lab.shard.groups[GROUP]
    assert isinstance(classic, ClassicGroup)
    decision = joining(lab, "alice")
    assert lab.shard.groups[GROUP] is classic
    lab.take(decision)
    assert lab.consumers.members.keys() == {"alice"}


def test_an_assignment_counts_with_the_replay_of_its_record() -> None:
    lab = GroupLab()
    member = lab.join_fully()
    lab.pass_time(1)
    name = member.response.member_id
    taken, lab.take = lab.take, lambda *_: None  # type: ignore[method-assign, assignment]
    lab.sync(name, 1, {name: b"all"})
    assert (lab.group.state, lab.group.members[name].assignment) == (State.COMPLETING, b"")
    lab.take = taken  # type: ignore[method-assign]
    again = lab.sync(name, 1, {name: b"all"})
    assert again.response.assignment == b"all"
    assert (lab.group.state, lab.group.members[name].assignment) == (State.STABLE, b"all")


def test_a_replayed_generation_keeps_what_only_the_memory_knows() -> None:
    """A coordinator that has it only from the log knows of the chosen protocol alone."""
    lab = GroupLab()
    protocols = (("range", b"topics"), ("sticky", b"other"))
    joined = lab.join_fully(protocols)
    lab.pass_time(1)
    name = joined.response.member_id
    lab.sync(name, 1, {name: b"all"})
    assert lab.group.members[name].protocols == protocols
    lab.fail_over()
    assert lab.group.members[name].protocols == protocols[:1]
