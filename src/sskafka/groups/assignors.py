"""The coordinator's assignors, which assign partitions to the members of a consumer group.

    range      each subscriber, in the order of names, gets a contiguous range of each topic's partitions. Topics with
               the same number of partitions and the same subscribers are assigned alike, so that they can be joined
    uniform    all members get the same number of partitions, give or take one, and keep what they have if possible

Both depend only on the subscriptions and the previous assignment, so all coordinators compute the same assignment.
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
    """The sort key. That of a static member stays the same across restarts."""
    topics: frozenset[Uuid]
    assigned: Partitions
    """The previous assignment."""


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
        self._keep_fair_share()
        self._assign_rest()
        if len(self._alike) > 1:
            self._even_out()
        return _frozen(self._assigned)

    def _readers_of_topics(self) -> dict[Uuid, list[int]]:
        """Return the ranks of each topic's subscribers. Topics with the same subscribers share one list."""
        readers: dict[Uuid, list[int]] = {}
        for topics, ranks in self._alike.items():
            for topic_id in topics:
                known = readers.get(topic_id)
                readers[topic_id] = ranks if known is None else sorted(known + ranks)
        return readers

    def _keep_fair_share(self) -> None:
        """Let members keep up to an even share. If there is a remainder, the first members may keep one more."""
        total = sum(count for topic, count in self._counts.items() if topic in self._readers)
        share, more = divmod(total, len(self._ordered)) if self._ordered else (0, 0)
        for subscriber in self._by_size():
            room = share
            kept = sorted(self._may_keep(subscriber))
            if len(kept) > share and more > 0:
                more -= 1
                room += 1
            del kept[room:]
            self._assigned[subscriber.member_id].update(kept)
            self._owners.update(dict.fromkeys(kept, subscriber.member_id))

    def _by_size(self) -> list[Subscriber]:
        return sorted(self._ordered, key=lambda subscriber: -len(subscriber.assigned))

    def _may_keep(self, subscriber: Subscriber) -> list[tuple[Uuid, int]]:
        """Return the partitions of the member that exist, that it subscribes to, and that nobody else has kept."""
        counts = {topic_id: self._counts.get(topic_id, 0) for topic_id in subscriber.topics}
        assigned, owners = subscriber.assigned, self._owners
        return [item for item in assigned if item[1] < counts.get(item[0], 0) and item not in owners]

    def _assign_rest(self) -> None:
        """Assign the remaining partitions to the members with the fewest, by a heap for each set of subscribers."""
        heaps: dict[int, list[tuple[int, int]]] = {}
        for topic_id in self._fewest_readers_first():
            readers = self._readers[topic_id]
            heap = heaps.get(id(readers))
            if heap is None:
                heap = heaps[id(readers)] = sorted((self._load(rank), rank) for rank in readers)
            self._assign_to_lightest(topic_id, heap)

    def _assign_to_lightest(self, topic_id: Uuid, heap: list[tuple[int, int]]) -> None:
        """Give each partition that nobody has to the member with the lowest load.

        Loads only grow here, so those in the heap may be too low only, if another heap has the member, too. Flat,
        because this runs for every partition."""
        names, owners, assigned = self._names, self._owners, self._assigned
        for index in range(self._counts[topic_id]):
            item = (topic_id, index)
            if item in owners:
                continue
            noted, rank = heap[0]
            while noted != (load := len(assigned[names[rank]])):
                heapreplace(heap, (load, rank))
                noted, rank = heap[0]
            name = names[rank]
            owners[item] = name
            assigned[name].add(item)
            heapreplace(heap, (noted + 1, rank))

    def _load(self, rank: int) -> int:
        return len(self._assigned[self._names[rank]])

    def _fewest_readers_first(self) -> list[Uuid]:
        """Return topics with few subscribers first, because partitions of other topics have more candidates."""
        topics = [topic_id for topic_id in self._counts if topic_id in self._readers]
        return sorted(topics, key=lambda topic_id: (len(self._readers[topic_id]), topic_id))

    def _assign(self, item: tuple[Uuid, int], member_id: str) -> None:
        before = self._owners.get(item)
        if before is not None:
            self._assigned[before].discard(item)
        self._owners[item] = member_id
        self._assigned[member_id].add(item)

    def _even_out(self) -> None:
        """Move partitions while that evens out the shares, which may be uneven if subscriptions differ."""
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
            self._assign(item, self._names[lightest])
            is_moved = True
        return is_moved


def _by_subscription(ordered: list[Subscriber]) -> dict[frozenset[Uuid], list[int]]:
    """Return the ranks of members by subscription. Nearly always all members have the same subscription."""
    alike: dict[frozenset[Uuid], list[int]] = {}
    for rank, subscriber in enumerate(ordered):
        alike.setdefault(subscriber.topics, []).append(rank)
    return alike


def _frozen(assigned: Mapping[str, set[tuple[Uuid, int]]]) -> Assignment:
    return {member_id: frozenset(partitions) for member_id, partitions in assigned.items()}


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
