"""Who reads which partitions of a consumer group: the coordinator's own assignors.

    range      the partitions of each topic in a row, shared out to its subscribers in the order of their names; topics
               with as many partitions and the same subscribers are shared out alike, so that they can be joined
    uniform    everybody has as many partitions as everybody else, give or take one, and keeps what it has where it can

Both are functions of the subscriptions and of the assignment before, and of nothing else: the same question has the
same answer on every coordinator.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from sskafka.model.ids import Uuid

Partitions = frozenset[tuple[Uuid, int]]
NOTHING: Partitions = frozenset()


class Subscriber(NamedTuple):
    member_id: str
    name: str
    """By which members are put in order: static members keep their place over restarts."""
    topics: frozenset[Uuid]
    assigned: Partitions
    """By the assignment before."""


Assignment = dict[str, Partitions]
Assignor = Callable[[list[Subscriber], Mapping[Uuid, int]], Assignment]


def assign_range(subscribers: list[Subscriber], partition_counts: Mapping[Uuid, int]) -> Assignment:
    assigned: dict[str, set[tuple[Uuid, int]]] = {subscriber.member_id: set() for subscriber in subscribers}
    ordered = sorted(subscribers, key=lambda subscriber: (subscriber.name, subscriber.member_id))
    for topic_id, count in partition_counts.items():
        readers = [subscriber for subscriber in ordered if topic_id in subscriber.topics]
        position = 0
        for place, reader in enumerate(readers):
            share = count // len(readers) + (place < count % len(readers))
            assigned[reader.member_id].update((topic_id, index) for index in range(position, position + share))
            position += share
    return _frozen(assigned)


def assign_uniform(subscribers: list[Subscriber], partition_counts: Mapping[Uuid, int]) -> Assignment:
    return _UniformAssignment(subscribers, partition_counts).made()


class _UniformAssignment:
    def __init__(self, subscribers: list[Subscriber], partition_counts: Mapping[Uuid, int]) -> None:
        self._ordered = sorted(subscribers, key=lambda subscriber: (subscriber.name, subscriber.member_id))
        self._counts = partition_counts
        self._topics = {subscriber.member_id: subscriber.topics for subscriber in subscribers}
        self._assigned: dict[str, set[tuple[Uuid, int]]] = {name: set() for name in self._topics}
        self._owners: dict[tuple[Uuid, int], str] = {}

    def made(self) -> Assignment:
        self._keep_what_is_fair()
        for topic_id, index in self._unassigned():
            readers = [item.member_id for item in self._ordered if topic_id in item.topics]
            if readers:
                self._give((topic_id, index), min(readers, key=lambda name: len(self._assigned[name])))
        self._even_out()
        return _frozen(self._assigned)

    def _keep_what_is_fair(self) -> None:
        """Nobody keeps more than an even share; where that does not come out even, the first ones may have one more."""
        wanted = {topic for topics in self._topics.values() for topic in topics}
        total = sum(count for topic, count in self._counts.items() if topic in wanted)
        share, more = divmod(total, len(self._ordered)) if self._ordered else (0, 0)
        for subscriber in self._by_size():
            room = share
            kept = [item for item in sorted(subscriber.assigned) if self._may_keep(subscriber, item)]
            if len(kept) > share and more > 0:
                more -= 1
                room += 1
            for item in kept[:room]:
                self._give(item, subscriber.member_id)

    def _by_size(self) -> list[Subscriber]:
        return sorted(self._ordered, key=lambda subscriber: -len(subscriber.assigned))

    def _may_keep(self, subscriber: Subscriber, item: tuple[Uuid, int]) -> bool:
        topic_id, index = item
        is_there = index < self._counts.get(topic_id, 0)
        return is_there and topic_id in subscriber.topics and item not in self._owners

    def _unassigned(self) -> Iterable[tuple[Uuid, int]]:
        """Of topics with the fewest readers first: the others have more to choose from."""
        readers = {topic: sum(topic in topics for topics in self._topics.values()) for topic in self._counts}
        for topic_id in sorted(self._counts, key=lambda topic: (readers[topic], topic)):
            for index in range(self._counts[topic_id]):
                if (topic_id, index) not in self._owners:
                    yield topic_id, index

    def _give(self, item: tuple[Uuid, int], member_id: str) -> None:
        before = self._owners.get(item)
        if before is not None:
            self._assigned[before].discard(item)
        self._owners[item] = member_id
        self._assigned[member_id].add(item)

    def _even_out(self) -> None:
        """Where subscriptions differ, the shares above may not be even: move partitions while that helps."""
        moved = True
        while moved:
            moved = any(self._maybe_move(item, owner) for item, owner in sorted(self._owners.items()))

    def _maybe_move(self, item: tuple[Uuid, int], owner: str) -> bool:
        readers = [subscriber.member_id for subscriber in self._ordered if item[0] in subscriber.topics]
        lightest = min(readers, key=lambda name: len(self._assigned[name]))
        if len(self._assigned[owner]) - len(self._assigned[lightest]) < 2:
            return False
        self._give(item, lightest)
        return True


def _frozen(assigned: Mapping[str, set[tuple[Uuid, int]]]) -> Assignment:
    return {member_id: frozenset(partitions) for member_id, partitions in assigned.items()}


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
