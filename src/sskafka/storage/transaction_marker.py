"""Reading the marker that ends a transaction out of its control batch."""

from sskafka.model.buffers import Buffer
from sskafka.records.batch import BatchHeader, CorruptBatchError
from sskafka.records.control import ControlType, EndTransactionMarker, read_control_type, read_end_transaction_marker
from sskafka.records.record import decode_records


def read_marker(batches: Buffer, header: BatchHeader, position: int = 0) -> EndTransactionMarker | None:
    """None for control batches of other kinds; CorruptBatchError for what cannot be read."""
    record = next(decode_records(batches, header, position), None)
    if record is None:
        raise CorruptBatchError("a control batch without a record")
    if read_control_type(record.key) not in {ControlType.ABORT, ControlType.COMMIT}:
        return None
    return read_end_transaction_marker(record.key, record.value)
