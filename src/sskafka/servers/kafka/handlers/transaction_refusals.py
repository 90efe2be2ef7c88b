"""The errors for clients when the transaction coordinator did not confirm a transaction to the partition leader."""

from sskafka.model.errors import ErrorCode

COORDINATOR_AWAY = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def refusal_for_client(error: ErrorCode, *, away: ErrorCode, adds: bool, knows_abortable: bool) -> ErrorCode:
    """`away` is the retriable error that replaces errors of the transaction coordinator, which the client would take
    for errors of the broker that it wrote to.

    Clients that let the broker add partitions also know CONCURRENT_TRANSACTIONS."""
    if error in COORDINATOR_AWAY or (error is ErrorCode.CONCURRENT_TRANSACTIONS and not adds):
        return away
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return error
