"""Which brokers take over the replicas of a broker that is to be removed."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sskafka.client.metadata import TopicView
from sskafka.model.ids import TopicPartition


class NoBrokerLeftError(Exception):
    """A partition has a replica on every other broker already."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"{partition} has a replica on every other broker, so nobody can take over this one")
        self.partition = partition


def plan_drain(
    topics: Iterable[TopicView], broker_id: int, racks: Mapping[int, str | None], *, allow_fewer: bool = False
) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the new replicas of every partition with a replica on the broker.

    `racks`: the rack of each broker that may take one over. The replacement is in a rack without another replica if
    there is one, and has the fewest replicas. It keeps the place in the order of replicas, the preferred leader's too.
    With `allow_fewer`, a partition that has a replica on every other broker gets no replacement."""
    topics = list(topics)
    load = Counter(replica for topic in topics for at in topic.partitions.values() for replica in at.replicas)
    plan = {}
    for topic in topics:
        for number, partition in sorted(topic.partitions.items()):
            if broker_id in partition.replicas:
                at = TopicPartition(topic.name, number)
                chosen = _replacement(partition.replicas, broker_id, racks, load)
                left = [replica for replica in partition.replicas if replica != broker_id]
                if chosen is None and not (allow_fewer and left):
                    raise NoBrokerLeftError(at)
                if chosen is not None:
                    load[chosen] += 1
                    left.insert(partition.replicas.index(broker_id), chosen)
                plan[at] = tuple(left)
    return plan


def _replacement(
    replicas: Sequence[int], broker_id: int, racks: Mapping[int, str | None], load: Mapping[int, int]
) -> int | None:
    candidates = [candidate for candidate in racks if candidate not in replicas]
    used = {racks.get(replica) for replica in replicas if replica != broker_id}
    return min(candidates, key=lambda candidate: (racks[candidate] in used, load[candidate], candidate), default=None)
