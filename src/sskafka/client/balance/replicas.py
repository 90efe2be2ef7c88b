"""Which broker has which replica: plans that copy data.

Every plan keeps the replication factor of each partition unless fewer replicas are allowed, never puts two replicas
of a partition on one broker, never spreads a partition over fewer racks than before, and moves no more than its goal
needs. Reassignments add before they remove, so a plan that keeps the replication factor cannot lower the number of
in-sync replicas.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from enum import StrEnum

from sskafka.client.balance.layout import Layout, Move, PlacedPartition, PlanError
from sskafka.client.balance.leaders import plan_leaders
from sskafka.model.ids import TopicPartition

BYTES_TOLERANCE = 0.1
"""Share of the mean by which the bytes of two brokers may differ in a balanced cluster."""
WORTH_MOVING = 0.01
"""Share of the mean below which a move of one replica is not worth its cost, when bytes are balanced."""


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
    """Move replicas one by one from the broker that has most until no two brokers differ by more than one."""
    while _any_transfer(placement, placement.counts, lambda gap, one: gap >= 2, _least_data):
        pass


def _balance_bytes(placement: "_Placement") -> None:
    """Move replicas of half a gap at most: each such move makes the gap smaller, so the loop ends."""
    mean = sum(placement.sizes[node_id] for node_id in placement.open_ids) / max(1, len(placement.open_ids))

    def helps(gap: int, one: PlacedPartition) -> bool:
        return gap > BYTES_TOLERANCE * mean and WORTH_MOVING * mean <= one.size_bytes <= gap / 2 and one.size_bytes > 0

    while _any_transfer(placement, placement.sizes, helps, _most_data):
        pass


def _least_data(placement: "_Placement", one: PlacedPartition, old: int, new: int) -> tuple[object, ...]:
    """Prefer topics that are crowded on the old broker, then the smallest partition."""
    return (-placement.crowding(one.partition.topic, old, new), one.size_bytes, one.partition)


def _most_data(placement: "_Placement", one: PlacedPartition, old: int, new: int) -> tuple[object, ...]:
    return (-one.size_bytes, -placement.crowding(one.partition.topic, old, new), one.partition)


def _any_transfer(
    placement: "_Placement",
    load: Counter[int],
    helps: Callable[[int, PlacedPartition], bool],
    preference: Callable[["_Placement", PlacedPartition, int, int], tuple[object, ...]],
) -> bool:
    """Move one replica from a broker with much load to one with little. Return False if no move helps."""
    by_load = sorted(placement.open_ids, key=lambda node_id: (load[node_id], node_id))
    for old in reversed(by_load):
        for new in by_load:
            gap = load[old] - load[new]
            if gap <= 0:
                break
            fit = [one for one in placement.movable(old, new) if helps(gap, one)]
            if fit:
                best = min(fit, key=lambda one: preference(placement, one, old, new))
                placement.move(best.partition, old, new)
                return True
    return False


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


def _share(load: Counter[int], node_ids: Iterable[int], node_id: int) -> float:
    total = sum(load[one] for one in node_ids)
    return load[node_id] / total if total else 0.0
