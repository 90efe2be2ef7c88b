"""The state of one producer in a partition: its epoch, its newest batches, and its open transaction.

Sequences count records by producer and partition. They are int32 and wrap to 0:

    batch A  sequences 0..4     batch B  5..5     batch C must begin with 6

The newest five batches are kept because a producer may have five requests in flight and retry any of them.
"""

from collections import deque
from typing import Final, NamedTuple

from sskafka.records.batch import NO_SEQUENCE, NO_TIMESTAMP, TRANSACTIONAL, BatchHeader
from sskafka.storage.errors import (
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
)

BATCHES_KEPT: Final = 5
NO_PRODUCER_EPOCH: Final = -1
NO_COORDINATOR_EPOCH: Final = -1
NO_TRANSACTION: Final = -1
_SEQUENCE_MASK: Final = 0x7FFFFFFF


class ProducedBatch(NamedTuple):
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @classmethod
    def of(cls, header: BatchHeader, base_offset: int) -> "ProducedBatch":
        delta = header.last_offset_delta
        return cls(header.last_sequence, base_offset + delta, delta, header.max_timestamp)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & _SEQUENCE_MASK


class ProducerEntry:
    __slots__ = (
        "batches",
        "coordinator_epoch",
        "last_seen_ms",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
        "transaction_first_offset",
    )

    def __init__(self, producer_id: int, producer_epoch: int = NO_PRODUCER_EPOCH) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.batches: deque[ProducedBatch] = deque(maxlen=BATCHES_KEPT)
        self.last_timestamp = NO_TIMESTAMP
        self.last_seen_ms = NO_TIMESTAMP
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.transaction_first_offset = NO_TRANSACTION

    def copy(self) -> "ProducerEntry":
        twin = ProducerEntry(self.producer_id, self.producer_epoch)
        twin.batches = self.batches.copy()
        twin.last_timestamp = self.last_timestamp
        twin.last_seen_ms = self.last_seen_ms
        twin.coordinator_epoch = self.coordinator_epoch
        twin.transaction_first_offset = self.transaction_first_offset
        return twin

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    @property
    def next_sequence(self) -> int:
        return (self.batches[-1].last_sequence + 1) & _SEQUENCE_MASK if self.batches else 0

    def expects(self, header: BatchHeader) -> bool:
        """Return whether the batch has the next sequence, and so cannot be a duplicate."""
        return header.producer_epoch == self.producer_epoch and header.base_sequence == self.next_sequence

    def duplicate_of(self, header: BatchHeader) -> ProducedBatch | None:
        """Return the stored batch that `header` duplicates."""
        if header.producer_epoch != self.producer_epoch:
            return None
        last_sequence = header.last_sequence
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.offset_delta == header.last_offset_delta:
                return batch
        return None

    def check(self, header: BatchHeader) -> None:
        """Raise unless the batch is the next one of its producer. Duplicates were handled before."""
        if header.producer_epoch == self.producer_epoch:
            if header.base_sequence != self.next_sequence:
                raise OutOfOrderSequenceError(
                    f"producer {self.producer_id} epoch {self.producer_epoch}: "
                    f"sequence {header.base_sequence} instead of {self.next_sequence}"
                )
        elif header.producer_epoch < self.producer_epoch:
            raise InvalidProducerEpochError(
                f"producer {self.producer_id} has epoch {self.producer_epoch}, not {header.producer_epoch}"
            )
        elif header.base_sequence != 0 and self.producer_epoch != NO_PRODUCER_EPOCH:
            raise OutOfOrderSequenceError(
                f"epoch {header.producer_epoch} of producer {self.producer_id} must begin with sequence 0, "
                f"not {header.base_sequence}"
            )
        if self.transaction_first_offset != NO_TRANSACTION and not header.attributes & TRANSACTIONAL:
            raise InvalidTransactionStateError(
                f"producer {self.producer_id} has an open transaction; the batch is not transactional"
            )

    def add(self, header: BatchHeader, base_offset: int, seen_ms: int) -> None:
        """Add a batch that is in the log at `base_offset`."""
        if header.producer_epoch != self.producer_epoch:
            self.change_epoch(header.producer_epoch)
        self.batches.append(ProducedBatch.of(header, base_offset))
        self.last_timestamp = header.max_timestamp
        self.last_seen_ms = seen_ms

    def change_epoch(self, producer_epoch: int) -> None:
        self.producer_epoch = producer_epoch
        self.batches.clear()
