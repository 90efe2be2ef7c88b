"""The numbering that lets brokers recognize a batch they already have.

A producer id with, for each partition, the sequence of the next record. When a batch is given up and nobody knows
whether the broker has it, its numbers can be used neither again nor skipped: a new producer id begins a new numbering.
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
        """Gives a batch its sequence, once."""
        if batch.sequence >= 0:
            return
        batch.identity = self.identity
        batch.sequence = self._next.get(batch.partition, 0)
        self._next[batch.partition] = (batch.sequence + len(batch.builder)) & _SEQUENCE_MASK

    def take_back(self, batch: OutgoingBatch) -> None:
        """The broker refused the batch, so the next one gets its numbers."""
        if batch.identity == self.identity and batch.sequence >= 0:
            self._next[batch.partition] = batch.sequence

    def abandon(self, batch: OutgoingBatch) -> None:
        """Nobody knows whether the broker has the batch."""
        if batch.identity == self.identity and batch.sequence >= 0:
            self.begin(NO_IDENTITY)
