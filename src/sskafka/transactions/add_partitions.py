"""AddPartitionsToTxn: a producer, or a leader on its behalf, adds partitions to a transaction; leaders verify them.

A partition is added before the first record is written to it, so the coordinator knows where markers must go. The
leader of a partition verifies that before it appends the first record of a transaction (`verify`). Otherwise a record
that arrives after the end of the transaction would open one that never ends.
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
    """Return NONE if `producer` has an open transaction that includes `partition`, otherwise the error."""
    error = identity_error(known, producer)
    if error is not ErrorCode.NONE:
        return error
    assert known is not None
    return ErrorCode.NONE if partition in known.partitions else ErrorCode.TRANSACTION_ABORTABLE


def identity_error(known: TransactionMetadata | None, producer: ProducerIdAndEpoch) -> ErrorCode:
    """Return why `producer` may not add partitions now, or NONE."""
    if known is None or known.state is TransactionState.DEAD:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.state.is_preparing and producer in {known.identity, known.identity_when_complete}:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if producer.producer_id != known.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.holder != known.identity:  # taken over (KIP-939): the new producer can only end it
        return ErrorCode.INVALID_TXN_STATE if producer == known.holder else ErrorCode.PRODUCER_FENCED
    if producer.producer_epoch != known.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE
