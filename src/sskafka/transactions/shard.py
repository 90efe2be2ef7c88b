"""The `CoordinatorShard` of transactions: the transactional ids of one partition of `__transaction_state`.

    request -> decision (init_producer_id, add_partitions, end_txn) -> record committed -> answer
                                                                    -> a PREPARE state: `SendMarkers` -> `complete`

Decisions change nothing; `replay` does. The markers of a prepared transaction are sent once that state is committed.
`start` and a regular sweep request the markers of every prepared transaction again, because they may have been in
flight when the coordinator changed, or may have failed. The sender ignores markers that it is sending already, and a
marker that is written twice does no harm.

An error after which the producer gives up (FINAL_ERRORS) is sent only when the state that it is based on has been
committed once more. A coordinator that was replaced and does not know it yet cannot commit anything, so it cannot send
such an error.
"""

from collections.abc import Callable, Collection, Iterator
from enum import StrEnum
from typing import NamedTuple

from sskafka.model.computation import Computation
from sskafka.model.coordination import Completion, CoordinatorResult, StateRecord, Timers
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.transactions import add_partitions, end_txn, init_producer_id
from sskafka.transactions.end_txn import EndTxn
from sskafka.transactions.init_producer_id import InitProducerId
from sskafka.transactions.log_records import (
    TransactionRecord,
    decode_record,
    decode_record_in_steps,
    encode_record,
    value_version,
)
from sskafka.transactions.metadata import (
    FINAL_ERRORS,
    TransactionMetadata,
    TransactionResult,
    TransactionState,
    completed,
    fenced,
    has_expired,
    has_timed_out,
)

SWEEP = "sweep"
EXPIRY = "expiry"

Outcomes = dict[TopicPartition, ErrorCode]


class SendMarkers(NamedTuple):
    """An effect: send the outcome of a transaction, which is certain now, to all of its partitions.

    When every partition has its marker, call `TransactionCoordinatorShard.complete` with the same value."""

    transaction: TransactionMetadata
    coordinator_epoch: int

    @property
    def is_commit(self) -> bool:
        return self.transaction.state is TransactionState.PREPARE_COMMIT


class TransactionOutcome(StrEnum):
    """An effect: count the outcome of a transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    TIMED_OUT = "timedout"
    """The transaction was open for too long. It is also counted as ABORTED once its markers are written."""


class TransactionLimits(NamedTuple):
    timeout_max_ms: int
    expiration_ms: int
    sweep_interval_ms: int
    expiry_interval_ms: int
    allows_two_phase: bool = False


class TransactionCoordinatorShard:
    """`transaction_version` returns the current level of that feature in the cluster."""

    def __init__(
        self, coordinator_epoch: int, timers: Timers, limits: TransactionLimits, transaction_version: Callable[[], int]
    ) -> None:
        self.coordinator_epoch = coordinator_epoch
        self.transactions: dict[str, TransactionMetadata] = {}
        self._timers = timers
        self._limits = limits
        self._transaction_version = transaction_version

    # -- requests of producers

    def init_producer_id(
        self, request: InitProducerId, spare_id: int | None, now_ms: int
    ) -> CoordinatorResult[TransactionRecord, TransactionResult]:
        """`spare_id`: an unused producer id, in case one is needed."""
        error = self._refused(request)
        if error is not ErrorCode.NONE:
            return CoordinatorResult(answer=TransactionResult(error))
        known = self.transactions.get(request.transactional_id)
        return self._decided(request.transactional_id, init_producer_id.decide(known, request, spare_id, now_ms))

    def _refused(self, request: InitProducerId) -> ErrorCode:
        if (request.two_phase or request.keep_prepared) and not self._limits.allows_two_phase:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if request.keep_prepared and not value_version(self._transaction_version()):
            return ErrorCode.UNSUPPORTED_VERSION  # the log has no field for the new producer
        return init_producer_id.refused(request, self._limits.timeout_max_ms)

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        client_version: int,
        now_ms: int,
    ) -> CoordinatorResult[TransactionRecord, TransactionResult]:
        known = self.transactions.get(transactional_id)
        verdict = add_partitions.decide(known, producer, partitions, client_version, now_ms)
        return self._decided(transactional_id, verdict)

    def end_txn(
        self, transactional_id: str, request: EndTxn, spare_id: int | None, now_ms: int
    ) -> CoordinatorResult[TransactionRecord, TransactionResult]:
        """`spare_id`: as for `init_producer_id`."""
        known = self.transactions.get(transactional_id)
        return self._decided(transactional_id, end_txn.decide(known, request, spare_id, now_ms))

    def _decided(
        self, transactional_id: str, verdict: TransactionResult
    ) -> CoordinatorResult[TransactionRecord, TransactionResult]:
        changed = verdict.changed
        if changed is not None:
            effects = [self._markers(changed)] if changed.state.is_preparing else []
            return CoordinatorResult([TransactionRecord(transactional_id, changed)], verdict, effects)
        return CoordinatorResult(self._confirmation(transactional_id, {verdict.error}), verdict)

    # -- requests of the leaders of partitions

    def verify(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Collection[TopicPartition]
    ) -> Outcomes:
        known = self.transactions.get(transactional_id)
        return {partition: add_partitions.verify(known, producer, partition) for partition in partitions}

    def verify_with_confirmation(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Collection[TopicPartition]
    ) -> CoordinatorResult[TransactionRecord, Outcomes]:
        """As `verify`, with final errors confirmed by the log."""
        outcomes = self.verify(transactional_id, producer, partitions)
        return CoordinatorResult(self._confirmation(transactional_id, outcomes.values()), outcomes)

    def _confirmation(self, transactional_id: str, errors: Collection[ErrorCode]) -> list[TransactionRecord]:
        """Return a record with the unchanged state if an error is final. Only the current coordinator can commit it."""
        if FINAL_ERRORS.isdisjoint(errors):
            return []
        return [TransactionRecord(transactional_id, self.transactions.get(transactional_id))]

    # -- markers

    def _markers(self, transaction: TransactionMetadata) -> SendMarkers:
        return SendMarkers(transaction, self.coordinator_epoch)

    def complete(self, sent: SendMarkers, now_ms: int) -> CoordinatorResult[TransactionRecord, None]:
        """Complete the transaction: every partition has its marker. Ignore markers of another coordinator.

        The answer is None; it tells the caller when the COMPLETE state is committed."""
        transaction = sent.transaction
        is_known = self.transactions.get(transaction.transactional_id) == transaction
        if not is_known or sent.coordinator_epoch != self.coordinator_epoch:
            return CoordinatorResult(answer=None)
        outcome = TransactionOutcome.COMMITTED if sent.is_commit else TransactionOutcome.ABORTED
        record = TransactionRecord(transaction.transactional_id, completed(transaction, now_ms))
        return CoordinatorResult([record], None, [outcome])

    # -- time

    def start(self, now_ms: int) -> CoordinatorResult[TransactionRecord, None]:
        self._timers.schedule(SWEEP, self._limits.sweep_interval_ms, self._sweep)
        self._timers.schedule(EXPIRY, self._limits.expiry_interval_ms, self._expire)
        return CoordinatorResult(effects=self._prepared())

    def _sweep(self, now_ms: int) -> CoordinatorResult[TransactionRecord, None]:
        """Abort transactions that have been open for too long, and request the markers of prepared ones again."""
        self._timers.schedule(SWEEP, self._limits.sweep_interval_ms, self._sweep)
        aborted = [fenced(known, now_ms) for known in self if has_timed_out(known, now_ms)]
        records = [TransactionRecord(changed.transactional_id, changed) for changed in aborted]
        effects: list[object] = [*self._prepared()]
        for changed in aborted:
            effects += [TransactionOutcome.TIMED_OUT, self._markers(changed)]
        return CoordinatorResult(records, effects=effects, is_divisible=True)

    def _expire(self, now_ms: int) -> CoordinatorResult[TransactionRecord, None]:
        self._timers.schedule(EXPIRY, self._limits.expiry_interval_ms, self._expire)
        expired = [known for known in self if has_expired(known, now_ms, self._limits.expiration_ms)]
        return CoordinatorResult(
            [TransactionRecord(known.transactional_id, None) for known in expired], is_divisible=True
        )

    def _prepared(self) -> list[SendMarkers]:
        return [self._markers(known) for known in self if known.state.is_preparing]

    # -- the log (CoordinatorShard)

    def encode(self, record: TransactionRecord) -> StateRecord:
        return encode_record(record, value_version(self._transaction_version()))

    def decode(self, record: StateRecord) -> TransactionRecord | None:
        return decode_record(record)

    def decode_in_steps(self, record: StateRecord) -> Computation[TransactionRecord | None]:
        return (yield from decode_record_in_steps(record))

    def replay(self, record: TransactionRecord, producer: ProducerIdAndEpoch | None) -> None:
        if record.metadata is None:
            self.transactions.pop(record.transactional_id, None)
        else:
            self.transactions[record.transactional_id] = record.metadata

    def replay_end_of_transaction(self, producer: ProducerIdAndEpoch, is_committed: bool) -> None:
        """Do nothing: `__transaction_state` has no transactional records."""

    def stop(self) -> list[Completion]:
        return []

    # -- administrators

    def find(self, transactional_id: str) -> TransactionMetadata | None:
        return self.transactions.get(transactional_id)

    def __iter__(self) -> Iterator[TransactionMetadata]:
        return iter(self.transactions.values())
