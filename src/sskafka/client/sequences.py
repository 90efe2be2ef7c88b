"""Sequence numbers, by which brokers detect duplicate batches.

The state is a producer id and epoch and, for each partition, the sequence of the next record. When a batch is given up
and it is unknown whether the broker stored it, its sequence numbers can be neither reused nor skipped. The producer
then needs a new identity, with which all sequences start at 0 again.
"""

from sskafka.client.accumulator import NO_IDENTITY, OutgoingBatch, ProducerIdentity
from sskafka.model.ids import TopicPartition

_SEQUENCE_MASK = 0x7FFFFFFF


class Sequences:
    def __init__(self) -> None:
        self.identity = NO_IDENTITY
        self._next: dict[TopicPartition, int] = {}

    def begin(self, identity: ProducerIdentity) -> None:
        self.identity = identity
        self._next.clear()

    def number(self, batch: OutgoingBatch) -> None:
        """Assign the identity and the next sequence to a batch that has none yet."""
        if batch.sequence >= 0:
            return
        batch.identity = self.identity
        batch.sequence = self._next.get(batch.partition, 0)
        self._next[batch.partition] = (batch.sequence + len(batch.builder)) & _SEQUENCE_MASK

    def reuse(self, batch: OutgoingBatch) -> None:
        """Give the sequence of a batch that the broker rejected to the next batch."""
        if batch.identity == self.identity and batch.sequence >= 0:
            self._next[batch.partition] = batch.sequence

    def abandon(self, batch: OutgoingBatch) -> None:
        """Drop the identity, because it is unknown whether the broker stored the batch."""
        if batch.identity == self.identity and batch.sequence >= 0:
            self.begin(NO_IDENTITY)
