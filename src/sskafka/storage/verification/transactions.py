"""Find the aborted transactions in a log's batches, to compare them with the transaction indexes.

Compaction may have removed a transaction's data, and retention its beginning; the index entry is not required then.
Every transaction found here must be in a transaction index.
"""

from sskafka.records.batch import BatchHeader
from sskafka.records.control import ControlType
from sskafka.storage.segment import Segment
from sskafka.storage.transactions.marker import read_marker_if_any


class OpenTransactions:
    """Takes a log's batches in order."""

    __slots__ = ("_producer_ids",)

    def __init__(self) -> None:
        self._producer_ids: set[int] = set()

    def is_aborted_by(self, segment: Segment, position: int, header: BatchHeader) -> bool:
        """Return whether the batch is the marker that aborts a transaction with data in this log."""
        if not header.is_transactional:
            return False
        if not header.is_control:
            self._producer_ids.add(header.producer_id)
            return False
        marker = read_marker_if_any(segment.file.read_at(header.size_bytes, position), header)
        if marker is None or header.producer_id not in self._producer_ids:
            return False
        self._producer_ids.discard(header.producer_id)
        return marker.type is ControlType.ABORT
