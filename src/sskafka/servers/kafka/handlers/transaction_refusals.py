"""What clients hear when the coordinator of their transaction did not confirm it to the broker that they wrote to."""

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
    """`away` is what the client tries again, in place of codes that would mean another coordinator to it.

    A client whose partitions the broker adds knows CONCURRENT_TRANSACTIONS, too."""
    if error in COORDINATOR_AWAY or (error is ErrorCode.CONCURRENT_TRANSACTIONS and not adds):
        return away
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return error
