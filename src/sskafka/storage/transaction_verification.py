"""Whether a producer may open a transaction in a partition: asked of the coordinator before the first batch is written.

A batch that arrives after its transaction has ended would open one that nobody ends, and hold back readers of committed
records for ever. So the leader takes the first batch of a transaction only once the coordinator has said that the
transaction is open and this partition in it. Between question and answer the end may come: its marker ends the
verification too, and the batch is refused.
"""

from sskafka.records.batch import BatchHeader
from sskafka.storage.errors import InvalidTransactionStateError, OutOfOrderSequenceError


class Verification:
    __slots__ = ("is_verified", "lowest_sequence", "must_begin_with_zero", "producer_epoch", "producer_id")

    def __init__(self, producer_id: int, producer_epoch: int, base_sequence: int, must_begin_with_zero: bool) -> None:
        """`must_begin_with_zero`: every transaction has an epoch of its own, so its first batch has sequence 0."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.lowest_sequence = base_sequence
        self.must_begin_with_zero = must_begin_with_zero
        self.is_verified = False

    def check(self, header: BatchHeader, is_known: bool) -> None:
        """For the batch that is about to open the transaction. `is_known`: the producer has written here before."""
        if not self.is_verified or header.producer_epoch != self.producer_epoch:
            raise unverified(header)
        if header.base_sequence > self.lowest_sequence:
            raise OutOfOrderSequenceError(
                f"producer {self.producer_id}: sequence {header.base_sequence} before {self.lowest_sequence}"
            )
        if self.must_begin_with_zero and not is_known and header.base_sequence > 0:
            raise OutOfOrderSequenceError(
                f"producer {self.producer_id} begins with sequence {header.base_sequence} instead of 0"
            )


def unverified(header: BatchHeader) -> InvalidTransactionStateError:
    return InvalidTransactionStateError(
        f"producer {header.producer_id} epoch {header.producer_epoch} has no transaction that is known to be open here"
    )
