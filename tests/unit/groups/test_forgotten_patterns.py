"""With more patterns than the cache holds, no group misses a topic."""

import pytest
from consumer_lab import ConsumerLab, LabConsumer

from sskafka.groups import topic_changes


def test_groups_with_more_patterns_than_are_remembered_hear_of_every_new_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topic_changes, "PATTERNS_MAX", 2)
    lab = ConsumerLab()
    topics = {"a-0": 1}
    lab.set_topics(topics)
    consumers = [LabConsumer(lab, f"m{n}") for n in range(5)]
    for n, consumer in enumerate(consumers):
        consumer.group_id, consumer.topics, consumer.regex = f"g{n}", None, f"a-.*|b{n}"
        consumer.join()
    for round_number in range(1, 4):
        topics |= {f"a-{round_number}": 1}
        lab.set_topics(dict(topics))
        for consumer in consumers:
            consumer.beat()
            assert len(consumer.owned) == round_number + 1, f"{consumer.group_id} has missed a-{round_number}"
