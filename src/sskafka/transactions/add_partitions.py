"""Partitions of a transaction: added by its producer (or by a leader on its behalf), and verified by leaders.

A partition is in the transaction before the first record is written to it, so whoever ends the transaction knows
where markers must go. A leader that sees a producer's first record asks here whether that is so (`verify`): a record
that comes late, after the end, must not open a transaction that nobody will ever end.
"""

from collections.abc import Collection

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.transactions.metadata import TransactionMetadata, TransactionResult, TransactionState


def decide(
    known: TransactionMetadata | None,
    producer: ProducerIdAndEpoch,
    partitions: Collection[TopicPartition],
    client_version: int,
    now_ms: int,
) -> TransactionResult:
    error = identity_error(known, producer)
    if error is not ErrorCode.NONE:
        return TransactionResult(error)
    assert known is not None
    is_ongoing = known.state is TransactionState.ONGOING
    if is_ongoing and known.partitions.issuperset(partitions):
        return TransactionResult()
    return TransactionResult(
        changed=known.becomes(
            TransactionState.ONGOING,
            now_ms,
            partitions=known.partitions.union(partitions),
            start_ms=known.start_ms if is_ongoing else now_ms,
            client_version=client_version,
        )
    )


def verify(known: TransactionMetadata | None, producer: ProducerIdAndEpoch, partition: TopicPartition) -> ErrorCode:
    """Whether a record of `producer` belongs to a transaction that is open in `partition`."""
    error = identity_error(known, producer)
    if error is not ErrorCode.NONE:
        return error
    assert known is not None
    return ErrorCode.NONE if partition in known.partitions else ErrorCode.TRANSACTION_ABORTABLE


def identity_error(known: TransactionMetadata | None, producer: ProducerIdAndEpoch) -> ErrorCode:
    """Why `producer` may not add to the transaction now."""
    if known is None or known.state is TransactionState.DEAD:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.state.is_preparing and producer in {known.identity, known.identity_when_complete}:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if producer.producer_id != known.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.holder != known.identity:  # taken over as it is: nothing may be added, its new producer can only end it
        return ErrorCode.INVALID_TXN_STATE if producer == known.holder else ErrorCode.PRODUCER_FENCED
    if producer.producer_epoch != known.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE
