"""Who reads which partitions of a consumer group: the coordinator's own assignors.

    range      the partitions of each topic in a row, shared out to its subscribers in the order of their names; topics
               with as many partitions and the same subscribers are shared out alike, so that they can be joined
    uniform    everybody has as many partitions as everybody else, give or take one, and keeps what it has where it can

Both are functions of the subscriptions and of the assignment before, and of nothing else: the same question has the
same answer on every coordinator.
"""

from collections.abc import Callable, Mapping
from heapq import heapreplace
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
        for rank, reader in enumerate(readers):
            share = count // len(readers) + (rank < count % len(readers))
            assigned[reader.member_id].update((topic_id, index) for index in range(position, position + share))
            position += share
    return _frozen(assigned)


def assign_uniform(subscribers: list[Subscriber], partition_counts: Mapping[Uuid, int]) -> Assignment:
    return _UniformAssignment(subscribers, partition_counts).made()


class _UniformAssignment:
    def __init__(self, subscribers: list[Subscriber], partition_counts: Mapping[Uuid, int]) -> None:
        self._ordered = sorted(subscribers, key=lambda subscriber: (subscriber.name, subscriber.member_id))
        self._counts = partition_counts
        self._names = [subscriber.member_id for subscriber in self._ordered]
        self._alike = _by_subscription(self._ordered)
        self._readers = self._readers_of_topics()
        self._assigned: dict[str, set[tuple[Uuid, int]]] = {name: set() for name in self._names}
        self._owners: dict[tuple[Uuid, int], str] = {}

    def made(self) -> Assignment:
        self._keep_what_is_fair()
        self._give_the_rest()
        if len(self._alike) > 1:
            self._even_out()
        return _frozen(self._assigned)

    def _readers_of_topics(self) -> dict[Uuid, list[int]]:
        """The places of those who read a topic; topics with the same readers share one list."""
        readers: dict[Uuid, list[int]] = {}
        for topics, ranks in self._alike.items():
            for topic_id in topics:
                known = readers.get(topic_id)
                readers[topic_id] = ranks if known is None else sorted(known + ranks)
        return readers

    def _keep_what_is_fair(self) -> None:
        """Nobody keeps more than an even share; where that does not come out even, the first ones may have one more."""
        total = sum(count for topic, count in self._counts.items() if topic in self._readers)
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

    def _give_the_rest(self) -> None:
        """To those with the least; a heap for each set of readers finds them."""
        heaps: dict[int, list[tuple[int, int]]] = {}
        for topic_id in self._fewest_readers_first():
            readers = self._readers[topic_id]
            heap = heaps.get(id(readers))
            if heap is None:
                heap = heaps[id(readers)] = sorted((self._load(rank), rank) for rank in readers)
            for index in range(self._counts[topic_id]):
                if (topic_id, index) not in self._owners:
                    self._give((topic_id, index), self._names[self._lightest(heap)])

    def _lightest(self, heap: list[tuple[int, int]]) -> int:
        """Loads only grow while the rest is given away, so a load in the heap may be too low, never too high."""
        while True:
            noted, rank = heap[0]
            load = self._load(rank)
            if noted == load:
                return rank
            heapreplace(heap, (load, rank))

    def _load(self, rank: int) -> int:
        return len(self._assigned[self._names[rank]])

    def _fewest_readers_first(self) -> list[Uuid]:
        """The others have more to choose from."""
        topics = [topic_id for topic_id in self._counts if topic_id in self._readers]
        return sorted(topics, key=lambda topic_id: (len(self._readers[topic_id]), topic_id))

    def _give(self, item: tuple[Uuid, int], member_id: str) -> None:
        before = self._owners.get(item)
        if before is not None:
            self._assigned[before].discard(item)
        self._owners[item] = member_id
        self._assigned[member_id].add(item)

    def _even_out(self) -> None:
        """Where subscriptions differ, the shares above may not be even: move partitions while that helps."""
        is_moved = True
        while is_moved:
            moves = [self._even_out_topic(topic_id) for topic_id in self._fewest_readers_first()]
            is_moved = any(moves)

    def _even_out_topic(self, topic_id: Uuid) -> bool:
        ranks = {self._names[rank]: rank for rank in self._readers[topic_id]}
        items: dict[int, list[tuple[Uuid, int]]] = {}
        for index in range(self._counts[topic_id]):
            items.setdefault(ranks[self._owners[topic_id, index]], []).append((topic_id, index))
        is_moved = False
        while items:
            lightest = min(self._readers[topic_id], key=self._load)
            heaviest = max(items, key=self._load)
            if self._load(heaviest) - self._load(lightest) < 2:
                break
            item = items[heaviest].pop()
            if not items[heaviest]:
                del items[heaviest]
            items.setdefault(lightest, []).append(item)
            self._give(item, self._names[lightest])
            is_moved = True
        return is_moved


def _by_subscription(ordered: list[Subscriber]) -> dict[frozenset[Uuid], list[int]]:
    """The places of those who want the same topics: nearly always everybody wants the same."""
    alike: dict[frozenset[Uuid], list[int]] = {}
    for rank, subscriber in enumerate(ordered):
        alike.setdefault(subscriber.topics, []).append(rank)
    return alike


def _frozen(assigned: Mapping[str, set[tuple[Uuid, int]]]) -> Assignment:
    return {member_id: frozenset(partitions) for member_id, partitions in assigned.items()}


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
