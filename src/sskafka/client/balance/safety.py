"""Decide whether a broker is safe to stop: what clients would notice."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sskafka.client.balance.layout import Layout
from sskafka.client.quorum import QuorumDescription
from sskafka.model.ids import TopicPartition


class StopRisk(NamedTuple):
    partition: TopicPartition | None
    """None: the metadata quorum."""
    text: str


def risks_of_stopping(
    layout: Layout, node_id: int, min_isr: Mapping[str, int], quorum: QuorumDescription, silent_voters: frozenset[int]
) -> Iterator[StopRisk]:
    """Yield what clients would lose if the broker stopped now; nothing if it is safe to stop."""
    for one in layout.partitions:
        if node_id not in one.isr:
            continue
        left = len(one.isr) - 1
        needed = min(min_isr.get(one.partition.topic, 1), len(one.replicas))
        if left == 0:
            yield StopRisk(one.partition, "no other replica is in sync: clients could neither write nor read")
        elif left < needed:
            yield StopRisk(
                one.partition, f"only {left} of {len(one.isr)} in-sync replicas would be left; acks=all needs {needed}"
            )
    voters = {voter.node_id for voter in quorum.voters}
    if node_id in voters:
        left = len(voters - silent_voters - {node_id})
        majority = len(voters) // 2 + 1
        if left < majority:
            yield StopRisk(
                None, f"only {left} of {len(voters)} quorum voters would be left; the controller needs {majority}"
            )
