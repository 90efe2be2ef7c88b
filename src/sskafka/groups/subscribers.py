"""The members of a consumer group as assignors see them, and which of them read which topic."""

from collections.abc import Mapping
from typing import NamedTuple

from sskafka.groups.partition_set import PartitionSet
from sskafka.model.computation import Computation
from sskafka.model.ids import Uuid

Assignment = dict[str, PartitionSet]
"""Partitions by member id."""

STEP_ITEMS = 2_000
"""Topics or partitions that are looked at in one step of an assignment."""


class Subscriber(NamedTuple):
    member_id: str
    name: str
    """The sort key. That of a static member stays the same across restarts."""
    topics: frozenset[Uuid]
    assigned: PartitionSet
    """The previous assignment."""


def in_order(subscribers: list[Subscriber]) -> list[Subscriber]:
    return sorted(subscribers, key=lambda subscriber: (subscriber.name, subscriber.member_id))


def by_subscription(ordered: list[Subscriber]) -> dict[frozenset[Uuid], list[int]]:
    """Return the ranks of members by subscription. Nearly always all members have the same subscription."""
    alike: dict[frozenset[Uuid], list[int]] = {}
    for rank, subscriber in enumerate(ordered):
        alike.setdefault(subscriber.topics, []).append(rank)
    return alike


def readers_of_topics(alike: Mapping[frozenset[Uuid], list[int]]) -> Computation[dict[Uuid, list[int]]]:
    """Return the ranks of each topic's subscribers, in order. Topics with the same subscribers share one list.

    Topics are sorted into kinds: those that all subscriptions so far have in common, or not. Every subscription splits
    each kind into the topics that it has and the others."""
    if len(alike) == 1:
        ((topics, ranks),) = alike.items()
        return dict.fromkeys(topics, ranks)
    kinds: dict[Uuid, int] = {}
    readers: list[list[int]] = [[]]
    for topics, ranks in alike.items():
        split: dict[int, int] = {}
        for number, topic_id in enumerate(topics, 1):
            before = kinds.get(topic_id, 0)
            after = split.get(before)
            if after is None:
                after = split[before] = len(readers)
                readers.append(readers[before] + ranks)
            kinds[topic_id] = after
            if not number % STEP_ITEMS:
                yield
        yield
    for found in readers:
        found.sort()
    yield
    return {topic_id: readers[kind] for topic_id, kind in kinds.items()}
