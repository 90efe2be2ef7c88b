"""Read the marker that ends a transaction from its control batch."""

import logging

from sskafka.model.buffers import Buffer
from sskafka.records.batch import BatchHeader, CorruptBatchError
from sskafka.records.control import ControlType, EndTransactionMarker, read_control_type, read_end_transaction_marker
from sskafka.records.record import decode_records

_log = logging.getLogger(__name__)


def read_marker(batches: Buffer, header: BatchHeader, position: int = 0) -> EndTransactionMarker | None:
    """Return the marker, or None for other control batches. Raise CorruptBatchError if the batch cannot be read."""
    record = next(decode_records(batches, header, position), None)
    if record is None:
        raise CorruptBatchError("a control batch without a record")
    if read_control_type(record.key) not in {ControlType.ABORT, ControlType.COMMIT}:
        return None
    return read_end_transaction_marker(record.key, record.value)


def maybe_read_marker(batches: Buffer, header: BatchHeader, position: int = 0) -> EndTransactionMarker | None:
    """Return the marker of a stored batch. An unreadable marker must not prevent serving the rest of the log."""
    try:
        return read_marker(batches, header, position)
    except CorruptBatchError as error:
        _log.warning("the control batch at offset %d cannot be read: %s", header.base_offset, error)
        return None
