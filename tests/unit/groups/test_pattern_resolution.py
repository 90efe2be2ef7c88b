"""Patterns that take longer than a turn are resolved in the background, with the rights of the client that has them."""

import pytest
from consumer_lab import ConsumerLab, LabConsumer
from test_pattern_rights import PATTERN, RightsLab

from sskafka.groups import pattern_resolution, topic_changes
from sskafka.model import pattern_matching
from sskafka.model.errors import ErrorCode


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pattern is quick enough for the turn of a heartbeat."""
    monkeypatch.setattr(topic_changes, "AT_ONCE_NS", -1)


def test_a_new_member_has_no_topics_until_its_pattern_is_resolved() -> None:
    lab = ConsumerLab({"orders": 2, "bills": 1})
    alice = LabConsumer(lab, "alice", regex="o.*")
    assert alice.join().code is ErrorCode.NONE
    assert list(lab.patterns) == ["g"]
    assert lab.consumers.epoch == 1
    assert alice.beat().code is ErrorCode.NONE
    lab.finish_patterns()
    assert lab.consumers.regex_topics == {"o.*": {"orders"}}
    assert lab.consumers.epoch == lab.consumers.target_epoch == 2, "it is assigned, too"
    alice.beat()
    assert alice.numbers == [0, 1]
    alice.beat()
    assert not lab.patterns


def test_other_subscriptions_take_effect_meanwhile() -> None:
    lab = ConsumerLab({"orders": 2, "bills": 1})
    alice = LabConsumer(lab, "alice", "bills", regex="o.*")
    alice.join()
    assert {topic for topic, _ in alice.owned} == {lab.topics["bills"].topic_id}
    lab.finish_patterns()
    alice.beat()
    assert len(alice.owned) == 3


def test_a_new_topic_is_found_without_matching_all() -> None:
    lab = ConsumerLab({"orders": 2})
    alice = LabConsumer(lab, "alice", regex="o.*")
    alice.join()
    lab.finish_patterns()
    alice.beat()
    lab.set_topics({"orders": 2, "others": 1})
    alice.beat()
    assert not lab.patterns
    assert lab.consumers.regex_topics == {"o.*": {"orders", "others"}}


def test_topics_that_change_meanwhile_are_not_missed() -> None:
    lab = ConsumerLab({"orders": 2})
    alice = LabConsumer(lab, "alice", regex="o.*")
    alice.join()
    lab.set_topics({"orders": 2, "others": 1})
    lab.finish_patterns()
    alice.beat()
    assert lab.consumers.regex_topics == {"o.*": {"orders", "others"}}


def test_a_pattern_that_takes_too_much_time_is_refused_with_the_next_heartbeats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = ConsumerLab({"orders": 2})
    alice = LabConsumer(lab, "alice", regex="o.*")
    assert alice.join().code is ErrorCode.NONE
    monkeypatch.setattr(pattern_matching, "MATCHING_NS_MAX", -1_000_000_000)
    lab.finish_patterns()
    for _ in range(2):
        assert alice.beat().code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert alice.say(subscribed_topic_names=["orders"], subscribed_topic_regex="").code is ErrorCode.NONE
    alice.beat()
    assert alice.numbers == [0, 1]


def test_rights_for_many_topics_are_looked_up_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_changes, "AT_ONCE_NS", 1)
    monkeypatch.setattr(pattern_resolution, "RIGHTS_AT_ONCE", 1)
    lab = RightsLab()
    alice = LabConsumer(lab, "alice", regex=PATTERN)
    assert alice.join().code is ErrorCode.NONE
    assert lab.matched == set()
    lab.finish_patterns()
    assert lab.matched == {"orders", "orders-1"}
    epoch = lab.consumers.epoch
    alice.beat()
    assert not lab.patterns
    lab.allow("orders-2")
    alice.beat()
    assert lab.matched == {"orders", "orders-1"}
    lab.finish_patterns()
    assert lab.matched == {"orders-2"}
    assert lab.consumers.epoch == epoch + 1


def test_a_group_that_is_gone_meanwhile() -> None:
    lab = ConsumerLab({"orders": 2})
    alice = LabConsumer(lab, "alice", regex="o.*")
    alice.join()
    alice.leave()
    lab.take(lab.shard.delete_group("g"))
    written = len(lab.log)
    lab.finish_patterns()
    assert len(lab.log) == written
