"""Patterns match only topics that a member may describe, also after a change of ACLs."""

import pytest
from consumer_lab import ConsumerLab, LabConsumer
from group_lab import Asked
from test_group_migration import OldConsumer

from sskafka.groups.consumer_heartbeat import Heartbeat, TopicRights
from sskafka.groups.members import Client
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

PATTERN = "orders.*"


class RightsLab(ConsumerLab):
    """All members may describe the same topics."""

    def __init__(self) -> None:
        super().__init__({"orders": 4, "orders-1": 1, "orders-2": 1})
        self.allow("orders", "orders-1")

    def allow(self, *names: str) -> None:
        self.rights = TopicRights(lambda name: name in names, object())

    def heartbeat(self, request: ConsumerGroupHeartbeatRequest, version: int = 1) -> Asked:
        heartbeat = Heartbeat(request, version, Client("client", "/10.0.0.1"), self.rights)
        return self.ask(lambda completion: self.shard.consumer.heartbeat(heartbeat, self.time.now_ms()))

    @property
    def matched(self) -> set[str]:
        return set(self.consumers.regex_topics.get(PATTERN, ()))


@pytest.fixture
def lab() -> RightsLab:
    return RightsLab()


def test_a_change_of_acls_resolves_patterns_again(lab: RightsLab) -> None:
    alice = LabConsumer(lab, "alice", regex=PATTERN)
    alice.join()
    assert lab.matched == {"orders", "orders-1"}
    alice.beat()
    epoch, written = lab.consumers.epoch, len(lab.log)
    alice.beat()
    assert len(lab.log) == written
    lab.allow("orders", "orders-1", "orders-2")
    alice.beat()
    assert (lab.matched, lab.consumers.epoch) == ({"orders", "orders-1", "orders-2"}, epoch + 1)
    lab.allow("orders-2")
    alice.beat()
    assert (lab.matched, lab.consumers.epoch) == ({"orders-2"}, epoch + 2)
    alice.beat()
    assert {topic for topic, _ in alice.owned} == {lab.topics["orders-2"].topic_id}


def test_acls_that_change_nothing_write_nothing(lab: RightsLab) -> None:
    alice, bob = LabConsumer(lab, "alice", regex=PATTERN), LabConsumer(lab, "bob")
    alice.join()
    bob.join()
    for consumer in (alice, bob) * 4:
        consumer.beat()
    written = len(lab.log)
    lab.allow("orders", "orders-1", "payments")
    for consumer in (bob, alice, bob):
        consumer.beat()
    assert len(lab.log) == written


def test_members_of_the_classic_protocol_do_not_resolve_patterns(lab: RightsLab) -> None:
    alice, old = LabConsumer(lab, "alice", regex=PATTERN), OldConsumer(lab)
    alice.join()
    assert old.join().code is ErrorCode.NONE
    assert lab.matched == {"orders", "orders-1"}, "JoinGroup has no rights to decide by"
    old.sync()
    for consumer in (alice, old, alice, old, alice):
        consumer.beat()
    lab.set_topics({"orders": 4, "orders-1": 1, "orders-2": 1, "orders-3": 1})
    old.beat()
    assert lab.matched == {"orders", "orders-1"}
    lab.allow("orders", "orders-3")
    alice.beat()
    assert lab.matched == {"orders", "orders-3"}, "the next heartbeat of alice hears of the topic, too"


def test_members_of_the_classic_protocol_hear_of_topics_without_patterns(lab: RightsLab) -> None:
    alice, old = LabConsumer(lab, "alice"), OldConsumer(lab)
    alice.join()
    assert old.join().code is ErrorCode.NONE
    old.sync()
    for consumer in (alice, old, alice, old, alice):
        consumer.beat()
    epoch = lab.consumers.epoch
    lab.set_topics({"orders": 6, "orders-1": 1})
    old.beat()
    assert lab.consumers.epoch == epoch + 1
