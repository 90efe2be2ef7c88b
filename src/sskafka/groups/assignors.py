"""The coordinator's assignors, which assign partitions to the members of a consumer group.

    range      each subscriber, in the order of names, gets a contiguous range of each topic's partitions. Topics with
               the same number of partitions and the same subscribers are assigned alike, so that they can be joined
    uniform    all members get the same number of partitions, give or take one, and keep what they have if possible

Both depend only on the subscriptions and the previous assignment, so all coordinators compute the same assignment.
"""

from collections.abc import Callable, Mapping
from heapq import heapreplace
from typing import NamedTuple

from sskafka.groups.dealing import Dealer
from sskafka.groups.partition_set import NOTHING, MutablePartitionSet, PartitionSet
from sskafka.model.ids import Uuid

Partitions = PartitionSet
__all__ = ["ASSIGNORS", "NOTHING", "Assignment", "Partitions", "Subscriber", "assign_range", "assign_uniform"]


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
    ordered = _in_order(subscribers)
    shares = [MutablePartitionSet() for _ in ordered]
    readers = _readers_of_topics(_by_subscription(ordered))
    for topic_id, count in partition_counts.items():
        ranks = readers.get(topic_id, [])
        position = 0
        for number, rank in enumerate(ranks[:count]):
            share = count // len(ranks) + (number < count % len(ranks))
            shares[rank].add_range(topic_id, position, position + share)
            position += share
    return {subscriber.member_id: share.frozen() for subscriber, share in zip(ordered, shares, strict=True)}


def assign_uniform(subscribers: list[Subscriber], partition_counts: Mapping[Uuid, int]) -> Assignment:
    ordered = _in_order(subscribers)
    alike = _by_subscription(ordered)
    if len(alike) == 1:
        return _assign_to_equals(ordered, partition_counts)
    return _UniformAssignment(ordered, alike, partition_counts).made()


def _in_order(subscribers: list[Subscriber]) -> list[Subscriber]:
    return sorted(subscribers, key=lambda subscriber: (subscriber.name, subscriber.member_id))


def _assign_to_equals(ordered: list[Subscriber], partition_counts: Mapping[Uuid, int]) -> Assignment:
    """Assign to members that all have the same subscription, in operations on sets. The result is that of
    `_UniformAssignment`."""
    topics = ordered[0].topics
    wanted = PartitionSet.of_counts({topic: count for topic, count in partition_counts.items() if topic in topics})
    share, more = divmod(len(wanted), len(ordered))
    free = MutablePartitionSet(dict(wanted.masks()))
    kept: dict[str, PartitionSet] = {}
    for subscriber in sorted(ordered, key=lambda subscriber: -len(subscriber.assigned)):
        owned = free.common(subscriber.assigned)
        size = len(owned)
        if size > share:
            room = share + (more > 0)
            more -= more > 0
            owned = owned if size == room else owned.first(room)
        kept[subscriber.member_id] = owned
        free.remove(owned)
    dealer = Dealer([len(kept[subscriber.member_id]) for subscriber in ordered])
    dealt = dealer.dealt(free.frozen())
    return {
        subscriber.member_id: kept[subscriber.member_id] | more_of
        for subscriber, more_of in zip(ordered, dealt, strict=True)
    }


class _UniformAssignment:
    """Assigns to members whose subscriptions differ."""

    def __init__(
        self,
        ordered: list[Subscriber],
        alike: dict[frozenset[Uuid], list[int]],
        partition_counts: Mapping[Uuid, int],
    ) -> None:
        self._ordered = ordered
        self._counts = partition_counts
        self._names = [subscriber.member_id for subscriber in self._ordered]
        self._alike = alike
        self._readers = _readers_of_topics(alike)
        self._assigned: dict[str, set[tuple[Uuid, int]]] = {name: set() for name in self._names}
        self._owners: dict[tuple[Uuid, int], str] = {}

    def made(self) -> Assignment:
        self._keep_fair_share()
        self._assign_rest()
        if self._ordered:
            self._even_out()
        return {member_id: PartitionSet.of(partitions) for member_id, partitions in self._assigned.items()}

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
        while is_moved and self._is_uneven():
            moves = [self._even_out_topic(topic_id) for topic_id in self._fewest_readers_first()]
            is_moved = any(moves)

    def _is_uneven(self) -> bool:
        loads = [len(partitions) for partitions in self._assigned.values()]
        return max(loads) - min(loads) > 1

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


def _readers_of_topics(alike: Mapping[frozenset[Uuid], list[int]]) -> dict[Uuid, list[int]]:
    """Return the ranks of each topic's subscribers. Topics with the same subscribers share one list."""
    if len(alike) == 1:
        ((topics, ranks),) = alike.items()
        return dict.fromkeys(topics, ranks)
    kinds: dict[Uuid, tuple[int, ...]] = {}
    for kind, topics in enumerate(alike):
        for topic_id in topics:
            kinds[topic_id] = (*kinds.get(topic_id, ()), kind)
    every = list(alike.values())
    ranks_of = {kind: sorted(rank for one in kind for rank in every[one]) for kind in set(kinds.values())}
    return {topic_id: ranks_of[kind] for topic_id, kind in kinds.items()}


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
