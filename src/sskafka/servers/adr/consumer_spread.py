"""Spread consumers that let the broker choose: each connection gets the partition with the fewest such connections.

The connection keeps its partition of a topic until it closes.
"""

from collections import Counter
from typing import TypeAlias

from sskafka.model.ids import TopicPartition

Chosen: TypeAlias = dict[str, int]
"""The partitions of one connection, by topic."""


class ConsumerSpread:
    def __init__(self) -> None:
        self._readers: Counter[TopicPartition] = Counter()

    def partition_for(self, topic: str, partition_count: int, chosen: Chosen) -> int:
        """Return the connection's partition of the topic. At first the least used partition, the lowest of several."""
        if topic not in chosen:
            choice = min(range(partition_count), key=lambda index: (self._readers[TopicPartition(topic, index)], index))
            chosen[topic] = choice
            self._readers[TopicPartition(topic, choice)] += 1
        return chosen[topic]

    def release(self, chosen: Chosen) -> None:
        """Release the partitions of a closed connection."""
        for topic, index in chosen.items():
            self._readers[TopicPartition(topic, index)] -= 1
        chosen.clear()
