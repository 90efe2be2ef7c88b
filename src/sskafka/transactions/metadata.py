"""What the coordinator knows of one transactional id: a value; every change makes a new one.

Epochs in the second version of the protocol (client_version 2), where each transaction ends an epoch:

    producer writes with E -> EndTxn(E) -> PREPARE at E+1, markers carry E+1 -> COMPLETE at E+1 -> it writes with E+1

Nothing that was sent with E can then be taken for a part of the next transaction. A fenced producer (timed out, or
replaced by a newer one) skips a number, E+2, so that its own EndTxn(E) cannot look like the repetition of one that was
carried out.

A two-phase transaction that a new producer takes over as it is (KIP-939) keeps E until it ends; the new producer
ends it with `next_producer_epoch`. Epochs end at 32767, which no producer ever gets: after 32766 comes epoch 0
of the next producer id.
"""

from typing import Any, NamedTuple

from sskafka.model.ids import TopicPartition
from sskafka.transactions.states import NEXT_STATES, TransactionState

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIME = -1
EPOCH_MAX = 2**15 - 1
LAST_USABLE_EPOCH = EPOCH_MAX - 1

NO_TIMEOUT_MS = 2**31 - 1
"""The timeout of a two-phase transaction: it is never aborted by time."""

FIRST_VERSION = 0
BUMPING_VERSION = 2
"""The version of transactions from which on every transaction has an epoch of its own."""


class ProducerIdentity(NamedTuple):
    producer_id: int
    producer_epoch: int


NOBODY = ProducerIdentity(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


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
    """Whose epochs were used up before `producer_id` took over."""
    next_producer_id: int = NO_PRODUCER_ID
    """Set while preparing in the last epoch: who takes over once the transaction is complete."""
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """With which the producer last asked for a newer epoch: it may ask again when the answer was lost."""
    next_producer_epoch: int = NO_PRODUCER_EPOCH
    """Set while a transaction is ONGOING that a new producer took over without aborting it: the epoch that ends it."""

    @property
    def identity(self) -> ProducerIdentity:
        return ProducerIdentity(self.producer_id, self.producer_epoch)

    @property
    def identity_when_complete(self) -> ProducerIdentity:
        """With what the producer goes on after the transaction that is being prepared."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return ProducerIdentity(self.next_producer_id, 0)
        return self.identity

    @property
    def holder(self) -> ProducerIdentity:
        """Who may end the open transaction: its producer, or the one that took it over."""
        if self.next_producer_epoch != NO_PRODUCER_EPOCH:
            return ProducerIdentity(self.producer_id, self.next_producer_epoch)
        return self.identity

    @property
    def has_exhausted_epochs(self) -> bool:
        return self.producer_epoch >= LAST_USABLE_EPOCH

    @property
    def bumps_epochs(self) -> bool:
        return self.client_version >= BUMPING_VERSION

    def becomes(self, state: TransactionState, now_ms: int, **changes: Any) -> "TransactionMetadata":
        """The only way from one value to the next."""
        assert state in NEXT_STATES[self.state], f"{self.transactional_id}: {self.state.label} -> {state.label}"
        return self._replace(state=state, last_update_ms=now_ms, **changes)


def completed(known: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """Every partition has its marker."""
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
    """The open transaction is aborted, and its producer can do nothing more under its epoch."""
    assert known.state is TransactionState.ONGOING
    step = 2 if known.bumps_epochs else 1
    return known.becomes(
        TransactionState.PREPARE_ABORT,
        now_ms,
        producer_epoch=min(known.holder.producer_epoch + step, EPOCH_MAX),
        last_producer_epoch=NO_PRODUCER_EPOCH,
        next_producer_epoch=NO_PRODUCER_EPOCH,
    )
