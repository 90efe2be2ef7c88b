"""EndTxn, in both versions of the protocol.

First version (EndTxn 0-4): the epoch stays the same. A repeated request is answered from the state alone.

    ONGOING          prepare                    PREPARE_x   asked for x: CONCURRENT_TRANSACTIONS, else INVALID_TXN_STATE
    EMPTY            INVALID_TXN_STATE          COMPLETE_x  asked for x: done, else INVALID_TXN_STATE

Second version (EndTxn 5 and later, KIP-890): every EndTxn increases the epoch, so a repeated request is recognized by
its epoch, which is one less than the stored one. A request with the stored epoch ends the *next* transaction, which may
be empty.

    stored epoch E   ONGOING: prepare at E+1    idle: abort prepares at E+1, commit is INVALID_TXN_STATE
    asked with E-1   PREPARE_x: CONCURRENT_TRANSACTIONS    COMPLETE_x: done, with epoch E    else INVALID_TXN_STATE
    anything else    PRODUCER_FENCED

A transaction that a new producer took over without aborting it (KIP-939) can only be ended by that producer.

The answer is sent when the PREPARE state is committed: from then on the outcome is certain. The markers follow.
"""

from typing import NamedTuple

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch
from sskafka.transactions.metadata import (
    BUMPING_VERSION,
    EPOCH_MAX,
    LAST_USABLE_EPOCH,
    NEEDS_PRODUCER_ID,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TransactionMetadata,
    TransactionResult,
    TransactionState,
)

_S = TransactionState
INVALID_STATE = TransactionResult(ErrorCode.INVALID_TXN_STATE)
CONCURRENT = TransactionResult(ErrorCode.CONCURRENT_TRANSACTIONS)
FENCED = TransactionResult(ErrorCode.PRODUCER_FENCED)


class EndTxn(NamedTuple):
    producer: ProducerIdAndEpoch
    commit: bool
    client_version: int

    @property
    def preparing(self) -> TransactionState:
        return _S.PREPARE_COMMIT if self.commit else _S.PREPARE_ABORT

    @property
    def complete(self) -> TransactionState:
        return _S.COMPLETE_COMMIT if self.commit else _S.COMPLETE_ABORT


def decide(known: TransactionMetadata | None, request: EndTxn, spare_id: int | None, now_ms: int) -> TransactionResult:
    """`spare_id`: an unused producer id, in case the epochs of the current one are exhausted."""
    if known is None or known.state is _S.DEAD:
        return TransactionResult(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if known.holder != known.identity:
        if request.producer != known.holder:
            return FENCED
        known = known._replace(producer_epoch=known.next_producer_epoch, next_producer_epoch=NO_PRODUCER_EPOCH)
    if request.client_version >= BUMPING_VERSION:
        return _decide_bumping(known, request, spare_id, now_ms)
    if request.producer.producer_id != known.producer_id:
        return TransactionResult(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if request.producer.producer_epoch != known.producer_epoch:
        return FENCED
    match known.state:
        case _S.ONGOING:
            return _prepared(known, request, now_ms)
        case request.complete:
            return TransactionResult(identity=known.identity)
        case request.preparing:
            return CONCURRENT
        case _:
            return INVALID_STATE


def _decide_bumping(
    known: TransactionMetadata, request: EndTxn, spare_id: int | None, now_ms: int
) -> TransactionResult:
    if _is_repeated(known, request.producer):
        return _repeated(known, request)
    if known.state.is_preparing and request.producer in {known.identity, known.identity_when_complete}:
        return CONCURRENT  # the end of the next transaction, while this one is not complete
    if request.producer.producer_id != known.producer_id:
        return TransactionResult(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if request.producer.producer_epoch != known.producer_epoch:
        return FENCED
    if known.state.is_idle and request.commit:
        return INVALID_STATE
    if known.has_exhausted_epochs and spare_id is None:
        return NEEDS_PRODUCER_ID
    return _bumped(known, request, spare_id, now_ms)


def _is_repeated(known: TransactionMetadata, producer: ProducerIdAndEpoch) -> bool:
    """Return whether the request repeats the EndTxn that led to the stored state.

    In the last epoch, a fenced producer cannot skip a number as it does elsewhere (metadata.py). There, a prepared
    transaction without a successor of the producer id was fenced, so the request is no repetition."""
    if known.state in {_S.EMPTY, _S.ONGOING} or not known.bumps_epochs:
        return False
    if known.producer_epoch == EPOCH_MAX and known.next_producer_id == NO_PRODUCER_ID:
        return False
    if producer == (known.producer_id, known.producer_epoch - 1):
        return True
    return producer == (known.previous_producer_id, LAST_USABLE_EPOCH) and known.producer_epoch == 0


def _repeated(known: TransactionMetadata, request: EndTxn) -> TransactionResult:
    match known.state:
        case request.complete:
            return TransactionResult(identity=known.identity)
        case request.preparing:
            return CONCURRENT
        case _:
            return INVALID_STATE


def _prepared(known: TransactionMetadata, request: EndTxn, now_ms: int) -> TransactionResult:
    changed = known.becomes(request.preparing, now_ms, client_version=request.client_version)
    return TransactionResult(changed=changed, identity=changed.identity)


def _bumped(known: TransactionMetadata, request: EndTxn, spare_id: int | None, now_ms: int) -> TransactionResult:
    is_ongoing = known.state is _S.ONGOING
    next_id = spare_id if known.has_exhausted_epochs else None
    changed = known.becomes(
        request.preparing,
        now_ms,
        producer_epoch=known.producer_epoch + 1,
        last_producer_epoch=known.producer_epoch,
        next_producer_id=NO_PRODUCER_ID if next_id is None else next_id,
        client_version=request.client_version,
        start_ms=known.start_ms if is_ongoing else now_ms,
    )
    return TransactionResult(changed=changed, identity=changed.identity_when_complete)
