"""The state of one transactional id: an immutable value; every change creates a new one.

The states, numbered as in `__transaction_state`, and their transitions:

    state            may become                          when
    ---------------  ----------------------------------  ----------------------------------------------------------
    EMPTY            EMPTY                               the producer is initialized again
                     ONGOING                             partitions are added
                     PREPARE_ABORT                       an abort without partitions (second version: bumps the epoch)
                     DEAD                                the id was not used for transactional.id.expiration.ms
    ONGOING          ONGOING                             more partitions are added
                     PREPARE_COMMIT, PREPARE_ABORT       EndTxn; abort also by timeout and by a newer producer
    PREPARE_COMMIT   COMPLETE_COMMIT                     every partition has the marker
    PREPARE_ABORT    COMPLETE_ABORT                      every partition has the marker
    COMPLETE_COMMIT  EMPTY, ONGOING, PREPARE_ABORT, DEAD as from EMPTY
    COMPLETE_ABORT   EMPTY, ONGOING, PREPARE_ABORT, DEAD as from EMPTY
    DEAD             nothing                             the id is removed; the log gets a tombstone

Once a PREPARE state is committed, the outcome can no longer change, whichever broker coordinates.
PREPARE_EPOCH_FENCE is Kafka's state between fencing a producer and aborting its transaction. Both are one step here, so
no transaction is ever in that state; its number is reserved.

Epochs in the second version of the protocol (client_version 2), where each transaction ends an epoch:

    producer writes with E -> EndTxn(E) -> PREPARE at E+1, markers carry E+1 -> COMPLETE at E+1 -> it writes with E+1

So a record that was sent with E cannot become part of the next transaction. For a fenced producer (timed out, or
replaced by a newer one) the epoch skips a number, to E+2, so that its own EndTxn(E) is not taken for the repetition of
one that was carried out.

A two-phase transaction that a new producer takes over (KIP-939) keeps E until it ends; the new producer ends it with
`next_producer_epoch`. No producer ever gets the last epoch, 32767: after 32766 comes epoch 0 of the next producer id.
"""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIME = -1
EPOCH_MAX = 2**15 - 1
LAST_USABLE_EPOCH = EPOCH_MAX - 1

NO_TIMEOUT_MS = 2**31 - 1
"""The timeout of a two-phase transaction, which is never aborted because of its age."""

FIRST_VERSION = 0
BUMPING_VERSION = 2
"""The first version of the protocol with a new producer epoch for every transaction (KIP-890)."""


class TransactionState(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """The state as Kafka spells it, for example PrepareCommit."""
        return self.name.title().replace("_", "")

    @property
    def is_preparing(self) -> bool:
        return self in {TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT}

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open and no marker is outstanding."""
        return self in {TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}


STATE_BY_LABEL: Mapping[str, TransactionState] = MappingProxyType({state.label: state for state in TransactionState})

_S = TransactionState
_FROM_IDLE = frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD})

NEXT_STATES: Mapping[TransactionState, frozenset[TransactionState]] = MappingProxyType(
    {
        _S.EMPTY: _FROM_IDLE,
        _S.ONGOING: frozenset({_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT}),
        _S.PREPARE_COMMIT: frozenset({_S.COMPLETE_COMMIT}),
        _S.PREPARE_ABORT: frozenset({_S.COMPLETE_ABORT}),
        _S.COMPLETE_COMMIT: _FROM_IDLE,
        _S.COMPLETE_ABORT: _FROM_IDLE,
        _S.DEAD: frozenset(),
        _S.PREPARE_EPOCH_FENCE: frozenset(),
    }
)


NOBODY = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class TransactionMetadata(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIME
    last_update_ms: int = NO_TIME
    client_version: int = FIRST_VERSION
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id whose epochs were exhausted before `producer_id` replaced it."""
    next_producer_id: int = NO_PRODUCER_ID
    """Set while a transaction is prepared in the last epoch: the producer id that follows when it is complete."""
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch with which the producer last asked for a new one; it repeats the request if the response was lost."""
    next_producer_epoch: int = NO_PRODUCER_EPOCH
    """Set while an ONGOING transaction is taken over by a new producer (KIP-939): the epoch that ends it."""

    @property
    def identity(self) -> ProducerIdAndEpoch:
        return ProducerIdAndEpoch(self.producer_id, self.producer_epoch)

    @property
    def identity_when_complete(self) -> ProducerIdAndEpoch:
        """The producer id and epoch for the time after the transaction that is being prepared."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return ProducerIdAndEpoch(self.next_producer_id, 0)
        return self.identity

    @property
    def holder(self) -> ProducerIdAndEpoch:
        """The producer that may end the open transaction: its own, or the one that took it over."""
        if self.next_producer_epoch != NO_PRODUCER_EPOCH:
            return ProducerIdAndEpoch(self.producer_id, self.next_producer_epoch)
        return self.identity

    @property
    def has_exhausted_epochs(self) -> bool:
        return self.producer_epoch >= LAST_USABLE_EPOCH

    @property
    def bumps_epochs(self) -> bool:
        return self.client_version >= BUMPING_VERSION

    def becomes(self, state: TransactionState, now_ms: int, **changes: Any) -> "TransactionMetadata":
        """Return the next value. All changes of state go through here."""
        assert state in NEXT_STATES[self.state], f"{self.transactional_id}: {self.state.label} -> {state.label}"
        return self._replace(state=state, last_update_ms=now_ms, **changes)


def completed(known: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """Return the COMPLETE state: every partition has its marker."""
    is_commit = known.state is TransactionState.PREPARE_COMMIT
    state = TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
    producer_id, producer_epoch = known.identity_when_complete
    changed_id = producer_id != known.producer_id
    return known.becomes(
        state,
        now_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        previous_producer_id=known.producer_id if changed_id else known.previous_producer_id,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
    )


def fenced(known: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """Return the state that aborts the open transaction and fences its producer."""
    assert known.state is TransactionState.ONGOING
    step = 2 if known.bumps_epochs else 1
    return known.becomes(
        TransactionState.PREPARE_ABORT,
        now_ms,
        producer_epoch=min(known.holder.producer_epoch + step, EPOCH_MAX),
        last_producer_epoch=NO_PRODUCER_EPOCH,
        next_producer_epoch=NO_PRODUCER_EPOCH,
    )


def has_timed_out(known: TransactionMetadata, now_ms: int) -> bool:
    if known.state is not TransactionState.ONGOING or known.timeout_ms == NO_TIMEOUT_MS:
        return False
    return now_ms > known.start_ms + known.timeout_ms


def has_expired(known: TransactionMetadata, now_ms: int, expiration_ms: int) -> bool:
    return known.state.is_idle and now_ms >= known.last_update_ms + expiration_ms


class TransactionResult(NamedTuple):
    """The result of a request: an error or NONE, the new state, and the producer's id and epoch."""

    error: ErrorCode = ErrorCode.NONE
    changed: TransactionMetadata | None = None
    """The state to commit before the answer is sent; None if nothing changes."""
    identity: ProducerIdAndEpoch = NOBODY
    needs_producer_id: bool = False
    """The decision needs an unused producer id: get one and repeat the request with it."""


NEEDS_PRODUCER_ID = TransactionResult(needs_producer_id=True)

FINAL_ERRORS = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
"""Errors after which a producer aborts its transaction or fails. A coordinator that was replaced and does not know it
yet must not send one of these to a producer that already uses the next coordinator, so the log has to confirm them."""
