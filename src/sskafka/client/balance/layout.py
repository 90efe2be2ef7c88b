"""The layout of a cluster: which broker has which replicas, and the moves that change it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sskafka.model.ids import TopicPartition


class PlanError(Exception):
    """There is no plan that reaches the goal; the message says what is in the way."""


class BrokerSite(NamedTuple):
    """A broker that can have replicas."""

    node_id: int
    rack: str | None = None
    is_live: bool = True
    is_cordoned: bool = False
    """All log directories are cordoned: the broker is drained or about to leave."""

    @property
    def is_open(self) -> bool:
        """Whether a plan may give this broker replicas and leaders."""
        return self.is_live and not self.is_cordoned


class PlacedPartition(NamedTuple):
    partition: TopicPartition
    replicas: tuple[int, ...]
    """The preferred leader comes first."""
    isr: tuple[int, ...]
    leader: int
    size_bytes: int = 0
    """Size of one replica."""

    @property
    def has_leader(self) -> bool:
        return self.leader >= 0


class Move(NamedTuple):
    """New replicas of a partition. A move without new brokers changes only the order, and copies nothing."""

    partition: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]
    leader: int
    """The broker from which new replicas fetch."""
    size_bytes: int = 0

    @property
    def added(self) -> tuple[int, ...]:
        return tuple(replica for replica in self.after if replica not in self.before)

    @property
    def copied_bytes(self) -> int:
        return self.size_bytes * len(self.added)


@dataclass(frozen=True, slots=True)
class Layout:
    brokers: Mapping[int, BrokerSite]
    partitions: Sequence[PlacedPartition]

    @property
    def open_ids(self) -> list[int]:
        return sorted(node_id for node_id, broker in self.brokers.items() if broker.is_open)

    def is_open(self, node_id: int) -> bool:
        return node_id in self.brokers and self.brokers[node_id].is_open

    def rack_of(self, node_id: int) -> str:
        """Return the rack. Brokers without one share the same unnamed rack."""
        broker = self.brokers.get(node_id)
        return (broker.rack if broker is not None else None) or ""

    def racks(self, replicas: Iterable[int]) -> int:
        """Return how many racks have a replica."""
        return len({self.rack_of(replica) for replica in replicas})

    def without(self, *node_ids: int) -> "Layout":
        """Return the layout with these brokers closed to replicas and leaders."""
        closed = {
            node_id: broker._replace(is_cordoned=True) if node_id in node_ids else broker
            for node_id, broker in self.brokers.items()
        }
        return replace(self, brokers=closed)

    def only(self, topics: Iterable[str]) -> "Layout":
        """Return the layout of these topics."""
        chosen = set(topics)
        return replace(self, partitions=[one for one in self.partitions if one.partition.topic in chosen])

    def after(self, moves: Iterable[Move]) -> "Layout":
        """Return the layout when the moves are done: added replicas are in sync, the preferred replica leads."""
        by_partition = {move.partition: move for move in moves}
        return replace(self, partitions=[_moved(one, by_partition.get(one.partition)) for one in self.partitions])

    def moves_to(self, wanted: "Layout") -> list[Move]:
        """Return the moves from this layout to another layout of the same partitions."""
        target = {one.partition: one.replicas for one in wanted.partitions}
        return [
            Move(one.partition, one.replicas, target[one.partition], one.leader, one.size_bytes)
            for one in self.partitions
            if target[one.partition] != one.replicas
        ]

    def replica_counts(self) -> Counter[int]:
        return Counter(replica for one in self.partitions for replica in one.replicas)

    def replica_bytes(self) -> Counter[int]:
        sizes: Counter[int] = Counter()
        for one in self.partitions:
            for replica in one.replicas:
                sizes[replica] += one.size_bytes
        return sizes

    def preferred_counts(self) -> Counter[int]:
        """Return for how many partitions each broker is the preferred leader."""
        return Counter(one.replicas[0] for one in self.partitions)


def _moved(one: PlacedPartition, move: Move | None) -> PlacedPartition:
    if move is None:
        return one
    in_sync = tuple(replica for replica in move.after if replica in one.isr or replica not in one.replicas)
    leader = move.after[0] if move.after[0] in in_sync else one.leader
    return one._replace(replicas=move.after, isr=in_sync, leader=leader)


def planned_seconds(moves: Iterable[Move], bytes_per_second: int) -> float:
    """Return how long the copies take at best. The rate limits each broker, as sender and as receiver."""
    sent: Counter[int] = Counter()
    received: Counter[int] = Counter()
    for move in moves:
        sent[move.leader] += move.copied_bytes
        received.update(dict.fromkeys(move.added, move.size_bytes))
    return max([0, *sent.values(), *received.values()]) / bytes_per_second
