"""Which replica leads: plans that change the order of replicas, and copy nothing.

A leader is handed over along a path of brokers. In this cluster, 1 cannot give a leader to 3 directly, but through 2:

    leaders      1: a b c     2: d        3: none
    replicas     a b c: 1 2   d: 2 3
    path         1 gives a to 2, 2 gives d to 3

A plan is finished when no path leads from a broker to another one with two leaders less. Then no other choice of
leaders has a smaller maximum.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import pairwise

from sskafka.client.balance.layout import Layout, Move, PlacedPartition
from sskafka.model.ids import TopicPartition


def plan_leaders(layout: Layout) -> list[Move]:
    """Return the fewest changes of preferred leaders that balance their number among open brokers."""
    handover = _Handover(layout)
    while path := handover.next_path():
        handover.follow(path)
    return layout.moves_to(_reordered(layout, handover.leaders))


def plan_drain(layout: Layout, node_id: int) -> list[Move]:
    """Return the order of replicas in which the broker is the last choice: it leads only what nobody else can lead.

    Its leaders go to those in-sync replicas that lead least."""
    others = layout.without(node_id)
    counts = others.preferred_counts()
    moved: dict[TopicPartition, PlacedPartition] = {}
    for one in sorted(others.partitions, key=lambda one: len(_candidates(others, one))):
        candidates = _candidates(others, one)
        if node_id not in one.replicas or not candidates:
            continue
        leader = one.replicas[0]
        if leader == node_id or leader not in candidates:
            leader = min(candidates, key=lambda candidate: (counts[candidate], candidate))
            counts[leader] += 1
        rest = [replica for replica in one.replicas if replica not in {leader, node_id}]
        moved[one.partition] = one._replace(replicas=(leader, *rest, node_id))
    wanted = Layout(layout.brokers, [moved.get(one.partition, one) for one in layout.partitions])
    return layout.moves_to(wanted)


def undrainable(layout: Layout, node_id: int) -> list[TopicPartition]:
    """Return the partitions that the broker keeps leading, because no other in-sync replica can."""
    others = layout.without(node_id)
    return sorted(one.partition for one in layout.partitions if one.leader == node_id and not _candidates(others, one))


def _candidates(layout: Layout, one: PlacedPartition) -> list[int]:
    """Return the in-sync replicas on open brokers."""
    return [replica for replica in one.replicas if replica in one.isr and layout.is_open(replica)]


def _reordered(layout: Layout, leaders: dict[TopicPartition, int]) -> Layout:
    return Layout(layout.brokers, [_led_by(one, leaders[one.partition]) for one in layout.partitions])


def _led_by(one: PlacedPartition, leader: int) -> PlacedPartition:
    return one._replace(replicas=(leader, *(replica for replica in one.replicas if replica != leader)))


class _Handover:
    """The preferred leaders while a plan is made, and which broker could take over partitions of which other."""

    def __init__(self, layout: Layout) -> None:
        self.leaders: dict[TopicPartition, int] = {}
        self._counts: Counter[int] = Counter(dict.fromkeys(layout.open_ids, 0))
        self._candidates: dict[TopicPartition, list[int]] = {}
        self._heirs: dict[int, dict[int, dict[TopicPartition, None]]] = defaultdict(lambda: defaultdict(dict))
        """By leader and candidate: the partitions that the first could give to the second."""
        for one in layout.partitions:
            self._candidates[one.partition] = _candidates(layout, one)
            self._lead(one.partition, one.replicas[0])

    def _lead(self, partition: TopicPartition, leader: int) -> None:
        self.leaders[partition] = leader
        self._counts[leader] += 1
        for candidate in self._candidates[partition]:
            if candidate != leader:
                self._heirs[leader][candidate][partition] = None

    def _resign(self, partition: TopicPartition) -> None:
        leader = self.leaders.pop(partition)
        self._counts[leader] -= 1
        for candidate in self._candidates[partition]:
            if candidate != leader:
                del self._heirs[leader][candidate][partition]

    def next_path(self) -> Sequence[int]:
        """Return brokers along which a leader can move from one that leads much to one that leads little."""
        for start, count in sorted(self._counts.items(), key=lambda item: (-item[1], item[0])):
            path = self._path_from(start, count - 2)
            if path:
                return path
        return ()

    def _path_from(self, start: int, count_max: int) -> Sequence[int]:
        came_from: dict[int, int | None] = {start: None}
        waiting = deque([start])
        while waiting:
            at = waiting.popleft()
            for heir in self._heirs_of(at):
                if heir in came_from:
                    continue
                came_from[heir] = at
                if self._counts[heir] <= count_max:
                    return list(_path_to(heir, came_from))[::-1]
                waiting.append(heir)
        return ()

    def _heirs_of(self, leader: int) -> Iterable[int]:
        heirs = (heir for heir, partitions in self._heirs[leader].items() if partitions)
        return sorted(heirs, key=lambda heir: (self._counts[heir], heir))

    def follow(self, path: Sequence[int]) -> None:
        for giver, heir in pairwise(path):
            partition = next(iter(self._heirs[giver][heir]))
            self._resign(partition)
            self._lead(partition, heir)


def _path_to(end: int, came_from: dict[int, int | None]) -> Iterable[int]:
    at: int | None = end
    while at is not None:
        yield at
        at = came_from[at]
