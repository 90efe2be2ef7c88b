"""What time does to transactional ids: open transactions are aborted, unused ids forgotten."""

from sskafka.transactions.metadata import NO_TIMEOUT_MS, TransactionMetadata
from sskafka.transactions.states import TransactionState


def has_timed_out(known: TransactionMetadata, now_ms: int) -> bool:
    if known.state is not TransactionState.ONGOING or known.timeout_ms == NO_TIMEOUT_MS:
        return False
    return now_ms > known.start_ms + known.timeout_ms


def has_expired(known: TransactionMetadata, now_ms: int, expiration_ms: int) -> bool:
    return known.state.is_idle and now_ms >= known.last_update_ms + expiration_ms
