"""The producers of a partition: sequences for idempotence, open transactions for the last stable offset.

The leader calls the `check` methods before it writes. `add` and `end_transaction` follow once the batch is in the log,
so a rejected or failed append changes nothing. Followers and recovery do not check: they trust the log.

    open transactions           first offset of each, by producer
    ended but undecided         transactions whose marker is in the log but not yet below the high watermark;
                                readers must not see their outcome before all in-sync replicas have the marker
    verifications               producers about to open a transaction, see transactions/verification.py
"""

from collections.abc import Iterable
from typing import NamedTuple

from sskafka.records.batch import NO_SEQUENCE, NO_TIMESTAMP, TRANSACTIONAL, BatchHeader
from sskafka.records.control import ControlType, EndTransactionMarker
from sskafka.storage.errors import InvalidProducerEpochError, InvalidRecordError, TransactionCoordinatorFencedError
from sskafka.storage.producers.entry import NO_TRANSACTION, ProducedBatch, ProducerEntry
from sskafka.storage.transactions.index import AbortedTxn
from sskafka.storage.transactions.verification import Verification, Verifications, unverified

PRODUCERS_MAX = 20_000
"""Limit of remembered producers. It bounds memory if many producers appear within `producer.id.expiration.ms`."""


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class ProducerState:
    __slots__ = ("_open", "_undecided", "_verifications", "producers", "verifies_transactions")

    def __init__(self, producers: Iterable[ProducerEntry] = ()) -> None:
        self.producers: dict[int, ProducerEntry] = {}
        self._open: dict[int, int] = {}  # producer id -> first offset; in the order of first offsets
        self._undecided: list[CompletedTransaction] = []
        self._verifications = Verifications()
        self.verifies_transactions = False
        self.load(producers)

    def load(self, producers: Iterable[ProducerEntry], seen_ms: int = NO_TIMESTAMP) -> None:
        """Start with these producers, last seen at `seen_ms`."""
        self._undecided = []
        self._verifications = Verifications()
        self.producers = {producer.producer_id: producer for producer in producers}
        for producer in self.producers.values():
            producer.last_seen_ms = seen_ms
        started = [p for p in self.producers.values() if p.transaction_first_offset != NO_TRANSACTION]
        started.sort(key=lambda producer: producer.transaction_first_offset)
        self._open = {producer.producer_id: producer.transaction_first_offset for producer in started}

    # ---- the leader's append

    def check(self, header: BatchHeader) -> ProducedBatch | None:
        """Check an append of one batch. Return the stored batch that it duplicates, None if it is the producer's next
        one.

        Raise if it is neither. An unknown producer may start with any sequence."""
        entry = self.producers.get(header.producer_id)
        known = None
        if entry is not None:
            known = None if entry.expects(header) else entry.duplicate_of(header)
            if known is None:
                entry.check(header)
        if header.attributes & TRANSACTIONAL and known is None:
            self._check_verified(header)
        return known

    def check_epoch(self, header: BatchHeader) -> None:
        """Check the epoch of a batch that a coordinator writes for a producer. Such a batch has no sequence."""
        entry = self.producers.get(header.producer_id)
        if entry is not None and header.producer_epoch < entry.producer_epoch:
            raise InvalidProducerEpochError(
                f"producer {header.producer_id} has epoch {entry.producer_epoch}, not {header.producer_epoch}"
            )

    def check_all(self, headers: Iterable[BatchHeader]) -> None:
        """Check an append of several batches, each as if the batches before it had been written."""
        drafts: dict[int, ProducerEntry] = {}
        for header in headers:
            if header.producer_id < 0:
                continue
            known = drafts.get(header.producer_id) or self.producers.get(header.producer_id)
            if known is not None:
                if known.duplicate_of(header) is not None:
                    raise InvalidRecordError("the append mixes duplicate and new batches")
                known.check(header)
            if header.attributes & TRANSACTIONAL and header.producer_id not in drafts:
                self._check_verified(header)
            draft = known.copy() if known is not None else ProducerEntry(header.producer_id)
            draft.add(header, header.base_offset, 0)
            drafts[header.producer_id] = draft

    def check_marker(self, header: BatchHeader, marker: EndTransactionMarker) -> None:
        entry = self.producers.get(header.producer_id)
        if entry is None:
            return
        if header.producer_epoch < entry.producer_epoch:
            raise InvalidProducerEpochError(
                f"marker of epoch {header.producer_epoch} for producer {header.producer_id} "
                f"which has epoch {entry.producer_epoch}"
            )
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise TransactionCoordinatorFencedError(
                f"marker of coordinator epoch {marker.coordinator_epoch}, {entry.coordinator_epoch} was here before"
            )

    def check_bumped_marker(self, producer_id: int, producer_epoch: int) -> None:
        """Check a marker where every transaction has its own epoch: the marker must have a newer epoch.

        A duplicate marker finds no open transaction and changes nothing."""
        entry = self.producers.get(producer_id)
        if entry is None or entry.transaction_first_offset == NO_TRANSACTION:
            return
        if producer_epoch <= entry.producer_epoch:
            raise InvalidProducerEpochError(
                f"stale marker of epoch {producer_epoch}: producer {producer_id} has epoch {entry.producer_epoch}"
            )

    # ---- the first batch of a transaction

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        entry = self.producers.get(producer_id)
        if entry is None or entry.transaction_first_offset == NO_TRANSACTION:
            return False
        return entry.producer_epoch == producer_epoch

    def begin_verification(
        self,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int = NO_SEQUENCE,
        supports_epoch_bump: bool = False,
    ) -> Verification:
        """Begin the verification of a transaction that a batch with this sequence would open."""
        return self._verifications.begin(producer_id, producer_epoch, base_sequence, supports_epoch_bump)

    def give_up_verification(self, verification: Verification) -> None:
        """End a verification: the coordinator does not know the transaction."""
        self._verifications.drop(verification)

    def verified(self, verification: Verification) -> bool:
        """Mark the transaction as verified by the coordinator. Return False if the verification has lapsed in the
        meantime: the coordinator must be asked again.

        If the coordinator was asked twice, the first answer may already have allowed the transaction to open."""
        verification.is_verified = self._verifications.has(verification)
        return verification.is_verified or self.has_open_transaction(
            verification.producer_id, verification.producer_epoch
        )

    def _check_verified(self, header: BatchHeader) -> None:
        if not self.verifies_transactions or self.has_open_transaction(header.producer_id, header.producer_epoch):
            return
        verification = self._verifications.find(header.producer_id, header.producer_epoch)
        if verification is None:
            raise unverified(header)
        verification.check(header, is_known=header.producer_id in self.producers)

    # ---- what is in the log

    def add(self, header: BatchHeader, base_offset: int, seen_ms: int) -> None:
        """Add a data batch that is in the log at `base_offset`."""
        entry = self._entry(header.producer_id)
        entry.add(header, base_offset, seen_ms)
        if header.is_transactional and entry.transaction_first_offset == NO_TRANSACTION:
            entry.transaction_first_offset = base_offset
            self._open[header.producer_id] = base_offset
            self._verifications.opened(header.producer_id, header.producer_epoch)

    def end_transaction(
        self, header: BatchHeader, marker: EndTransactionMarker, offset: int, seen_ms: int
    ) -> AbortedTxn | None:
        """Apply a marker that is in the log at `offset`. Return the entry for the transaction index, if any."""
        self._verifications.marker_written(header.producer_id, header.producer_epoch)
        entry = self._entry(header.producer_id)
        if header.producer_epoch > entry.producer_epoch:
            entry.change_epoch(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = header.max_timestamp
        entry.last_seen_ms = seen_ms
        first_offset = self._open.pop(header.producer_id, NO_TRANSACTION)
        entry.transaction_first_offset = NO_TRANSACTION
        if first_offset == NO_TRANSACTION:
            return None
        aborted = marker.type == ControlType.ABORT
        self._undecided.append(CompletedTransaction(header.producer_id, first_offset, offset, aborted))
        if not aborted:
            return None
        last_stable_offset = min(self._open.values(), default=offset + 1)
        return AbortedTxn(header.producer_id, first_offset, offset, last_stable_offset)

    def _entry(self, producer_id: int) -> ProducerEntry:
        entry = self.producers.get(producer_id)
        if entry is None:
            if len(self.producers) >= PRODUCERS_MAX:
                self._forget_idle_producers()
            entry = self.producers[producer_id] = ProducerEntry(producer_id)
        return entry

    def _forget_idle_producers(self) -> None:
        """Remove the tenth of the producers that has been idle longest. A producer that returns is treated as new."""
        idle = [entry for entry in self.producers.values() if entry.transaction_first_offset == NO_TRANSACTION]
        idle.sort(key=lambda entry: entry.last_seen_ms)
        for entry in idle[: PRODUCERS_MAX // 10]:
            del self.producers[entry.producer_id]

    # ---- what readers may see

    @property
    def open_transactions(self) -> dict[int, int]:
        """The first offset of each open transaction, by producer."""
        return dict(self._open)

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Return the first offset of a transaction that is open or whose end is not below the high watermark.

        The high watermark only grows, so transactions that ended below it are removed here."""
        if not self._open and not self._undecided:
            return None
        self._undecided = [done for done in self._undecided if done.last_offset >= high_watermark]
        firsts = [done.first_offset for done in self._undecided]
        firsts += self._open.values()
        return min(firsts, default=None)

    # ---- housekeeping

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Remove producers that have been idle for `expiration_ms`, unless they have an open transaction."""
        self._verifications.expire()
        limit = now_ms - expiration_ms
        expired = [
            producer.producer_id
            for producer in self.producers.values()
            if producer.last_seen_ms <= limit and producer.transaction_first_offset == NO_TRANSACTION
        ]
        for producer_id in expired:
            del self.producers[producer_id]
        return len(expired)

    def clear(self) -> None:
        self.load(())
