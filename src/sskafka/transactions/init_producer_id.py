"""InitProducerId for a transactional id: a new epoch, which fences the previous producer.

    the id is          answer
    -----------------  --------------------------------------------------------------------------------------
    unknown            a new producer id, epoch 0
    idle               the next epoch; after the last one a new producer id
    ONGOING            the transaction is aborted under a higher epoch; CONCURRENT_TRANSACTIONS until that is done
    ONGOING, and the   the next epoch, and the identity that the open transaction was written with; it stays open
    transaction is to  and can only be ended, by the new producer (KIP-939)
    be kept
    PREPARE_*          CONCURRENT_TRANSACTIONS until the markers are written

A producer that takes part in a two-phase commit (KIP-939) has no timeout, whatever it asks for. Brokers allow that
only if `transaction.two.phase.commit.enable` is set.

A producer that names its current id and epoch (version 3 and later) recovers from an error. It must still be the latest
producer of the transactional id. A repeated request gets the same answer.
"""

from typing import NamedTuple

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch
from sskafka.transactions.metadata import (
    LAST_USABLE_EPOCH,
    NEEDS_PRODUCER_ID,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    NO_TIMEOUT_MS,
    NOBODY,
    TransactionMetadata,
    TransactionResult,
    TransactionState,
    fenced,
)


class InitProducerId(NamedTuple):
    transactional_id: str
    timeout_ms: int
    expected: ProducerIdAndEpoch = NOBODY
    two_phase: bool = False
    keep_prepared: bool = False
    """Keep an open transaction, so that the new producer can end it (KIP-939)."""

    @property
    def stored_timeout_ms(self) -> int:
        return NO_TIMEOUT_MS if self.two_phase else self.timeout_ms

    @property
    def is_recovery(self) -> bool:
        return self.expected.producer_id != NO_PRODUCER_ID


def refused(request: InitProducerId, timeout_max_ms: int) -> ErrorCode:
    """Return the error of an invalid request, or NONE."""
    has_id = request.expected.producer_id != NO_PRODUCER_ID
    has_epoch = request.expected.producer_epoch != NO_PRODUCER_EPOCH
    if not request.transactional_id or has_id != has_epoch:
        return ErrorCode.INVALID_REQUEST
    if not request.two_phase and not 0 < request.timeout_ms <= timeout_max_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NONE


def decide(
    known: TransactionMetadata | None, request: InitProducerId, spare_id: int | None, now_ms: int
) -> TransactionResult:
    """Decide. `spare_id` is an unused producer id, in case one is needed."""
    if known is None:
        return _first(request, spare_id, now_ms)
    if request.is_recovery and not _may_recover(known, request.expected):
        return TransactionResult(ErrorCode.PRODUCER_FENCED)
    if known.state.is_preparing:
        return TransactionResult(ErrorCode.CONCURRENT_TRANSACTIONS)
    if known.state is TransactionState.ONGOING:
        if request.is_recovery and request.expected.producer_epoch != known.holder.producer_epoch:
            return TransactionResult(ErrorCode.PRODUCER_FENCED)
        if request.keep_prepared:
            return _taken_over(known, now_ms)
        return TransactionResult(ErrorCode.CONCURRENT_TRANSACTIONS, fenced(known, now_ms))
    return _next(known, request, spare_id, now_ms)


def _first(request: InitProducerId, spare_id: int | None, now_ms: int) -> TransactionResult:
    if spare_id is None:
        return NEEDS_PRODUCER_ID
    created = TransactionMetadata(
        request.transactional_id,
        spare_id,
        producer_epoch=0,
        timeout_ms=request.stored_timeout_ms,
        last_update_ms=now_ms,
    )
    return TransactionResult(changed=created, identity=created.identity)


def _taken_over(known: TransactionMetadata, now_ms: int) -> TransactionResult:
    """Let a new producer take over the open transaction.

    The last usable epoch stays the same, because a new producer id could not end what the old one wrote."""
    next_epoch = min(known.holder.producer_epoch + 1, LAST_USABLE_EPOCH)
    changed = known.becomes(TransactionState.ONGOING, now_ms, next_producer_epoch=next_epoch)
    return TransactionResult(changed=changed, identity=changed.holder)


def _may_recover(known: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Return whether the producer is known. It may name the previous producer id if the epochs of that id were
    exhausted and the response with the new id was lost."""
    if expected.producer_id == known.producer_id:
        return True
    return expected.producer_id == known.previous_producer_id and expected.producer_epoch >= LAST_USABLE_EPOCH


def _next(known: TransactionMetadata, request: InitProducerId, spare_id: int | None, now_ms: int) -> TransactionResult:
    expected_epoch = request.expected.producer_epoch
    if known.has_exhausted_epochs and (not request.is_recovery or expected_epoch == known.producer_epoch):
        return _rotated(known, request, spare_id, now_ms)
    if not request.is_recovery:
        return _initialized(known, request, known.producer_epoch + 1, NO_PRODUCER_EPOCH, now_ms)
    if request.expected == known.identity:
        return _initialized(known, request, known.producer_epoch + 1, known.producer_epoch, now_ms)
    if expected_epoch == known.last_producer_epoch:
        return _initialized(known, request, known.producer_epoch, known.last_producer_epoch, now_ms)
    return TransactionResult(ErrorCode.PRODUCER_FENCED)


def _rotated(
    known: TransactionMetadata, request: InitProducerId, spare_id: int | None, now_ms: int
) -> TransactionResult:
    if spare_id is None:
        return NEEDS_PRODUCER_ID
    last_epoch = known.producer_epoch if request.is_recovery else NO_PRODUCER_EPOCH
    return _initialized(known, request, 0, last_epoch, now_ms, producer_id=spare_id)


def _initialized(
    known: TransactionMetadata,
    request: InitProducerId,
    epoch: int,
    last_epoch: int,
    now_ms: int,
    producer_id: int | None = None,
) -> TransactionResult:
    changed_id = producer_id is not None
    changed = known.becomes(
        TransactionState.EMPTY,
        now_ms,
        producer_id=producer_id if changed_id else known.producer_id,
        previous_producer_id=known.producer_id if changed_id else known.previous_producer_id,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        timeout_ms=request.stored_timeout_ms,
        partitions=frozenset(),
        start_ms=NO_TIME,
    )
    return TransactionResult(changed=changed, identity=changed.identity)
