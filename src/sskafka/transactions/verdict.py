"""What the coordinator decides about a request: an error or none, what to write first, and who the producer is."""

from typing import NamedTuple

from sskafka.model.errors import ErrorCode
from sskafka.transactions.metadata import NOBODY, ProducerIdentity, TransactionMetadata


class Verdict(NamedTuple):
    error: ErrorCode = ErrorCode.NONE
    changed: TransactionMetadata | None = None
    """To be committed to the log before the answer leaves; None when nothing changes."""
    identity: ProducerIdentity = NOBODY
    needs_producer_id: bool = False
    """Nothing can be decided without an unused producer id: get one and ask again."""


NEEDS_PRODUCER_ID = Verdict(needs_producer_id=True)

FINAL_ERRORS = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
"""After which a producer gives up its transaction, or itself. A coordinator that was replaced and does not know it yet
must not say so to a producer that has gone on with the next one: the log has to confirm that it is in charge."""
