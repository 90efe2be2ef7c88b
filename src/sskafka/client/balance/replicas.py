"""Which broker has which replica: plans that copy data.

Every plan keeps the replication factor of each partition unless fewer replicas are allowed, never puts two replicas
of a partition on one broker, never spreads a partition over fewer racks than before, and moves no more than its goal
needs. Reassignments add before they remove, so a plan that keeps the replication factor cannot lower the number of
in-sync replicas.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

from sskafka.client.balance.layout import Layout, Move, PlacedPartition, PlanError
from sskafka.client.balance.leaders import plan_leaders
from sskafka.model.ids import TopicPartition

BYTES_TOLERANCE = 0.1
"""Share of the mean by which the bytes of two brokers may differ in a balanced cluster."""
WORTH_MOVING = 0.1
"""Share of a gap in bytes that all replicas which could move from one broker to the other must have together."""
Preference: TypeAlias = Callable[[PlacedPartition, int], tuple[Any, ...]]
"""The order in which replicas move, from a partition and from how crowded its topic is on the old broker."""


class Goal(StrEnum):
    LEADERS = "leaders"
    REPLICAS = "replicas"
    BYTES = "bytes"


def plan_decommission(layout: Layout, leaving: Collection[int], *, allow_fewer: bool = False) -> list[Move]:
    """Return moves after which the leaving brokers have no replica. Nothing else moves; raise PlanError if impossible.

    New replicas go to brokers that have little, on racks that the partition does not use yet. With `allow_fewer`, a
    partition that has a replica on every other broker loses one."""
    evacuation = _Placement(layout.without(*leaving))
    for one in sorted(layout.partitions, key=lambda one: (-one.size_bytes, one.partition)):
        for old in one.replicas:
            if old in leaving:
                evacuation.move_away(one.partition, old, allow_fewer=allow_fewer)
    for one in layout.partitions:
        if one.replicas[0] in leaving:
            evacuation.choose_leader(one.partition)
    return layout.moves_to(evacuation.layout())


def plan_rebalance(layout: Layout, goal: Goal) -> list[Move]:
    """Return moves that balance the open brokers by the goal. Leaders are balanced afterwards, since that is free."""
    placement = _Placement(layout)
    if goal is Goal.REPLICAS:
        _balance_replicas(placement)
    elif goal is Goal.BYTES:
        _balance_bytes(placement)
    moved = layout.after(layout.moves_to(placement.layout()))
    return layout.moves_to(moved.after(plan_leaders(moved)))


def plan_onto(layout: Layout, node_ids: Collection[int], goal: Goal) -> list[Move]:
    """Return moves after which only these brokers have replicas, balanced by the goal."""
    others = [node_id for node_id in layout.brokers if node_id not in node_ids]
    moved = layout.after(plan_decommission(layout, others)).without(*others)
    balanced = moved.after(plan_rebalance(moved, goal))
    return layout.moves_to(replace(balanced, brokers=layout.brokers))


def _balance_replicas(placement: "_Placement") -> None:
    """Move replicas from the brokers that have most until no two brokers differ by more than one."""

    def fitting(gap: int, candidates: list[PlacedPartition]) -> list[PlacedPartition]:
        return candidates if gap >= 2 else []

    _balance(placement, placement.counts, lambda one: 1, fitting, _least_data)


def _balance_bytes(placement: "_Placement") -> None:
    """Move replicas of half a gap at most: each such move makes the gap smaller, so the loop ends."""
    mean = _mean(placement.sizes, placement.open_ids)

    def fitting(gap: int, candidates: list[PlacedPartition]) -> list[PlacedPartition]:
        if gap <= BYTES_TOLERANCE * mean:
            return []
        fit = [one for one in candidates if 0 < one.size_bytes <= gap / 2]
        return fit if sum(one.size_bytes for one in fit) >= WORTH_MOVING * gap else []

    _balance(placement, placement.sizes, lambda one: one.size_bytes, fitting, _most_data)


def _least_data(one: PlacedPartition, crowding: int) -> tuple[Any, ...]:
    """Prefer topics that are crowded on the old broker, then the smallest partition."""
    return (-crowding, one.size_bytes, one.partition)


def _most_data(one: PlacedPartition, crowding: int) -> tuple[Any, ...]:
    return (-one.size_bytes, -crowding, one.partition)


def _balance(
    placement: "_Placement",
    load: Counter[int],
    weight: Callable[[PlacedPartition], int],
    fitting: Callable[[int, list[PlacedPartition]], list[PlacedPartition]],
    preference: Preference,
) -> None:
    """Move replicas from brokers with much load to brokers with little, until no pair of brokers has one that fits.

    `fitting` returns the candidates that make the gap between two brokers smaller."""
    mean = _mean(load, placement.open_ids)
    while True:
        by_load = sorted(placement.open_ids, key=lambda node_id: (load[node_id], node_id))
        for old, new in ((old, new) for old in reversed(by_load) for new in by_load if load[old] > load[new]):
            if fit := fitting(load[old] - load[new], placement.movable(old, new)):
                break
        else:
            return
        is_first = True
        for one in _in_order(placement, old, new, fit, preference):
            # The best move always helps. Others of this pair follow as long as neither broker passes the mean: no later
            # move has to undo them, and a large cluster takes few rounds.
            if is_first or (load[old] - weight(one) >= mean and load[new] + weight(one) <= mean):
                placement.move(one.partition, old, new)
            is_first = False


def _in_order(
    placement: "_Placement", old: int, new: int, candidates: Iterable[PlacedPartition], preference: Preference
) -> Iterator[PlacedPartition]:
    """Yield the candidates, best first. The caller may move each one, which changes the crowding of its topic alone."""
    of_topic: dict[str, list[PlacedPartition]] = {}
    for one in candidates:
        of_topic.setdefault(one.partition.topic, []).append(one)
    for waiting in of_topic.values():
        waiting.sort(key=lambda one: preference(one, 0), reverse=True)

    def entry(topic: str) -> tuple[tuple[Any, ...], str]:
        return preference(of_topic[topic][-1], placement.crowding(topic, old, new)), topic

    heap = [entry(topic) for topic in of_topic]
    heapify(heap)
    while heap:
        _, topic = heappop(heap)
        yield of_topic[topic].pop()
        if of_topic[topic]:
            heappush(heap, entry(topic))


class _Placement:
    """Replicas while a plan is made, with the load of each broker."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.open_ids = layout.open_ids
        self._placed = {one.partition: one for one in layout.partitions}
        self.counts = layout.replica_counts()
        self.sizes = layout.replica_bytes()
        self._leaders = layout.preferred_counts()
        self._on_broker: dict[int, dict[TopicPartition, None]] = {node_id: {} for node_id in layout.brokers}
        self._of_topic: Counter[tuple[int, str]] = Counter()
        for one in layout.partitions:
            for replica in one.replicas:
                self._on_broker.setdefault(replica, {})[one.partition] = None
                self._of_topic[replica, one.partition.topic] += 1

    def layout(self) -> Layout:
        return replace(self._layout, partitions=list(self._placed.values()))

    def crowding(self, topic: str, old: int, new: int) -> int:
        """Return how many replicas of the topic one broker has more than the other."""
        return self._of_topic[old, topic] - self._of_topic[new, topic]

    def movable(self, old: int, new: int) -> list[PlacedPartition]:
        """Return the partitions with a leader that may move from the old broker to the new one."""
        found = (self._placed[partition] for partition in self._on_broker[old] if partition not in self._on_broker[new])
        return [one for one in found if one.has_leader and self._keeps_racks(one, old, new)]

    def _keeps_racks(self, one: PlacedPartition, old: int, new: int) -> bool:
        layout = self._layout
        if layout.rack_of(old) == layout.rack_of(new):
            return True
        return layout.racks(_swapped(one.replicas, old, new)) >= layout.racks(one.replicas)

    def move(self, partition: TopicPartition, old: int, new: int) -> None:
        one = self._placed[partition]
        self._placed[partition] = one._replace(replicas=_swapped(one.replicas, old, new))
        self._count(one, old, -1)
        self._count(one, new, 1)
        del self._on_broker[old][partition]
        self._on_broker[new][partition] = None

    def _drop(self, one: PlacedPartition, old: int) -> None:
        left = tuple(replica for replica in one.replicas if replica != old)
        self._placed[one.partition] = one._replace(replicas=left)
        self._count(one, old, -1)
        del self._on_broker[old][one.partition]

    def _count(self, one: PlacedPartition, node_id: int, change: int) -> None:
        self.counts[node_id] += change
        self.sizes[node_id] += change * one.size_bytes
        self._of_topic[node_id, one.partition.topic] += change

    def move_away(self, partition: TopicPartition, old: int, *, allow_fewer: bool = False) -> None:
        """Move the replica to the best broker, or drop it if there is none and another replica is left.

        Raise PlanError if neither is possible."""
        one = self._placed[partition]
        if not one.has_leader:
            raise PlanError(f"{partition} has no leader, so its replicas cannot be copied")
        candidates = [node_id for node_id in self.open_ids if node_id not in one.replicas]
        if not candidates and allow_fewer and len(one.replicas) > 1:
            self._drop(one, old)
            return
        if not candidates:
            raise PlanError(
                f"{partition} has {len(one.replicas)} replicas, and only {len(self.open_ids)} brokers can have them"
            )
        stay = [replica for replica in one.replicas if replica != old]
        self.move(partition, old, min(candidates, key=lambda node_id: self._rank(partition, stay, node_id)))

    def _rank(self, partition: TopicPartition, stay: Sequence[int], node_id: int) -> tuple[object, ...]:
        """Rank a broker for a new replica: another rack first, then the least load, counted in replicas and bytes."""
        racks_lost = -self._layout.racks([*stay, node_id])
        load = _share(self.counts, self.open_ids, node_id) + _share(self.sizes, self.open_ids, node_id)
        return (racks_lost, load, self._of_topic[node_id, partition.topic], node_id)

    def choose_leader(self, partition: TopicPartition) -> None:
        """Make that replica the preferred leader which leads least."""
        one = self._placed[partition]
        able = [replica for replica in one.replicas if replica in self.open_ids] or list(one.replicas)
        leader = min(able, key=lambda replica: (self._leaders[replica], replica))
        self._leaders[leader] += 1
        rest = (replica for replica in one.replicas if replica != leader)
        self._placed[partition] = one._replace(replicas=(leader, *rest))


def _swapped(replicas: Sequence[int], old: int, new: int) -> tuple[int, ...]:
    return tuple(new if replica == old else replica for replica in replicas)


def _mean(load: Counter[int], node_ids: Sequence[int]) -> float:
    return sum(load[node_id] for node_id in node_ids) / max(1, len(node_ids))


def _share(load: Counter[int], node_ids: Iterable[int], node_id: int) -> float:
    total = sum(load[one] for one in node_ids)
    return load[node_id] / total if total else 0.0
