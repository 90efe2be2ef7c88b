"""Assignors: even shares, few moves, and a cost that grows with members and partitions, not with their product."""

from collections import Counter
from collections.abc import Iterable
from random import Random

import pytest

from sskafka.groups.assignors import ASSIGNORS, NOTHING, Assignment, Subscriber, assign_uniform
from sskafka.model.computation import finished
from sskafka.model.ids import Uuid


def topic(number: int) -> Uuid:
    return b"topic%11d" % number


class CountedTopics(frozenset[Uuid]):
    """Knows how often it was looked into."""

    looks = 0

    def __contains__(self, item: object) -> bool:
        CountedTopics.looks += 1
        return super().__contains__(item)


def subscriber(number: int, topics: Iterable[Uuid], before: Assignment | None = None) -> Subscriber:
    name = f"member-{number:04}"
    return Subscriber(name, name, CountedTopics(topics), (before or {}).get(name, NOTHING))


def check(subscribers: list[Subscriber], counts: dict[Uuid, int], made: Assignment) -> None:
    given = Counter(item for partitions in made.values() for item in partitions)
    read = {one for member in subscribers for one in member.topics}
    assert given == Counter((one, index) for one in read for index in range(counts.get(one, 0)))
    for member in subscribers:
        assert {one for one, _ in made[member.member_id]} <= set(member.topics)


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@pytest.mark.parametrize("seed", range(10))
def test_each_partition_has_one_reader_who_wants_it(name: str, seed: int) -> None:
    random = Random(seed)
    counts = {topic(number): random.randint(1, 9) for number in range(6)}
    before: Assignment = {}
    for _ in range(5):
        members = [
            subscriber(number, random.sample(sorted(counts), random.randint(0, 4)), before)
            for number in random.sample(range(12), random.randint(1, 10))
        ]
        before = finished(ASSIGNORS[name](members, counts))
        check(members, counts, before)


def test_even_shares_and_as_few_moves_as_that_needs() -> None:
    counts = {topic(1): 20, topic(2): 3}
    before = assign_uniform([subscriber(number, counts) for number in range(4)], counts)
    members = [subscriber(number, counts, before) for number in range(5)]
    made = assign_uniform(members, counts)
    check(members, counts, made)
    assert sorted(len(partitions) for partitions in made.values()) == [4, 4, 5, 5, 5]
    moved = sum(len(made[name] - partitions) for name, partitions in before.items())
    assert moved == 0, "those who stay get nothing that they did not have"


def test_where_subscriptions_differ_nobody_has_two_more_than_one_who_could_take_them() -> None:
    counts = {topic(1): 9, topic(2): 9}
    members = [subscriber(1, [topic(1)]), subscriber(2, counts), subscriber(3, [topic(2)]), subscriber(4, counts)]
    made = assign_uniform(members, counts)
    check(members, counts, made)
    assert sorted(len(partitions) for partitions in made.values()) == [4, 4, 5, 5]


def test_a_thousand_members_are_assigned_without_comparing_each_with_each_partition() -> None:
    counts = {topic(1): 1_000, topic(2): 1_000}
    before = assign_uniform([subscriber(number, counts) for number in range(999)], counts)
    members = [subscriber(number, counts, before) for number in range(1_000)]
    CountedTopics.looks = 0
    made = assign_uniform(members, counts)
    assert CountedTopics.looks <= 10 * (1_000 + 2_000)
    check(members, counts, made)
    assert {len(partitions) for partitions in made.values()} == {2}
