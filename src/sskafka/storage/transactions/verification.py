"""Verify with the transaction coordinator that a producer may open a transaction in a partition.

A batch that arrives after its transaction has ended would open a transaction that nobody ends, and read_committed
consumers would hang. The leader therefore accepts the first batch of a transaction only after the coordinator has
confirmed that the transaction is open and includes this partition. A marker may arrive between question and answer:

    marker of            the epoch of the verification    what it ends                       the verification
    -------------------  -------------------------------  ---------------------------------  -------------------
    an older epoch       any                              an earlier transaction             stays valid
    the same epoch       every transaction has its own    the previous transaction:          stays valid
                         (transaction version 2)          producers begin the next one
                                                          before its markers are written
    the same epoch       shared by transactions           perhaps the verified one           lapses
                         (versions 0 and 1)
    a newer epoch        any                              the verified one                   lapses

The answer to a lapsed verification is outdated: the coordinator must be asked again.
"""

from sskafka.records.batch import BatchHeader
from sskafka.storage.errors import InvalidTransactionStateError, OutOfOrderSequenceError


class Verification:
    __slots__ = (
        "is_idle",
        "is_verified",
        "lowest_sequence",
        "producer_epoch",
        "producer_id",
        "supports_epoch_bump",
    )

    def __init__(self, producer_id: int, producer_epoch: int, base_sequence: int, supports_epoch_bump: bool) -> None:
        """`supports_epoch_bump`: every transaction has its own epoch, so its first batch has sequence 0."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.lowest_sequence = base_sequence
        self.supports_epoch_bump = supports_epoch_bump
        self.is_verified = False
        self.is_idle = False
        """Whether nobody has asked since the last expiry."""

    def lapses_with_marker_of(self, marker_epoch: int) -> bool:
        if marker_epoch == self.producer_epoch:
            return not self.supports_epoch_bump
        return marker_epoch > self.producer_epoch

    def check(self, header: BatchHeader, is_known: bool) -> None:
        """Check the batch that is about to open the transaction. `is_known`: the producer has written here before."""
        if not self.is_verified:
            raise unverified(header)
        if header.base_sequence > self.lowest_sequence:
            raise OutOfOrderSequenceError(
                f"producer {self.producer_id}: sequence {header.base_sequence} before {self.lowest_sequence}"
            )
        if self.supports_epoch_bump and not is_known and header.base_sequence > 0:
            raise OutOfOrderSequenceError(
                f"producer {self.producer_id} begins with sequence {header.base_sequence} instead of 0"
            )


class Verifications:
    """One partition's verifications by producer id and epoch, so that a zombie does not replace its successor's."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[int, Verification]] = {}

    def begin(
        self, producer_id: int, producer_epoch: int, base_sequence: int, supports_epoch_bump: bool
    ) -> Verification:
        of_producer = self._by_producer.setdefault(producer_id, {})
        known = of_producer.get(producer_epoch)
        if known is None:
            known = Verification(producer_id, producer_epoch, base_sequence, supports_epoch_bump)
            of_producer[producer_epoch] = known
        known.lowest_sequence = min(known.lowest_sequence, base_sequence)
        known.is_idle = False
        return known

    def find(self, producer_id: int, producer_epoch: int) -> Verification | None:
        return self._by_producer.get(producer_id, {}).get(producer_epoch)

    def has(self, verification: Verification) -> bool:
        return self.find(verification.producer_id, verification.producer_epoch) is verification

    def drop(self, verification: Verification) -> None:
        if self.has(verification):
            of_producer = self._by_producer[verification.producer_id]
            del of_producer[verification.producer_epoch]
            if not of_producer:
                del self._by_producer[verification.producer_id]

    def opened(self, producer_id: int, producer_epoch: int) -> None:
        """Remove the verification: a batch of this epoch has opened the transaction."""
        for known in list(self._by_producer.get(producer_id, {}).values()):
            if known.producer_epoch <= producer_epoch:
                self.drop(known)

    def marker_written(self, producer_id: int, marker_epoch: int) -> None:
        for known in list(self._by_producer.get(producer_id, {}).values()):
            if known.lapses_with_marker_of(marker_epoch):
                self.drop(known)

    def expire(self) -> None:
        """Remove verifications that were not asked for since the last call: their producers are gone."""
        for of_producer in list(self._by_producer.values()):
            for known in list(of_producer.values()):
                if known.is_idle:
                    self.drop(known)
                known.is_idle = True

    def __len__(self) -> int:
        return sum(len(of_producer) for of_producer in self._by_producer.values())


def unverified(header: BatchHeader) -> InvalidTransactionStateError:
    return InvalidTransactionStateError(
        f"producer {header.producer_id} epoch {header.producer_epoch} has no verified transaction in this partition"
    )
