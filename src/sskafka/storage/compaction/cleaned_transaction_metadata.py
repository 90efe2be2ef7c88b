"""Decide which transactional batches and markers are removed while a log is cleaned from its start to its end.

    batch of an aborted transaction     void: its records are removed, whatever their keys
    batch of a committed transaction    cleaned like any other batch
    marker                              void if no batch of its transaction precedes it any more

Only decided transactions are cleaned, so all aborted transactions are known from the start. A marker is kept as long as
a batch of its transaction precedes it, even if that batch is removed in the same pass: a reader may be between the two.
"""

from collections.abc import Iterable

from sskafka.model.buffers import Buffer
from sskafka.records.batch import BatchHeader
from sskafka.records.control import ControlType
from sskafka.storage.transactions.index import AbortedTxn
from sskafka.storage.transactions.marker import read_marker


class CleanedTransactionMetadata:
    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._ahead = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
        self._aborting: dict[int, AbortedTxn] = {}  # producer id -> its open transaction, which will be aborted
        self._met: set[int] = set()  # producers with a batch since their last marker
        self.retained: list[AbortedTxn] = []
        """Aborted transactions whose markers are kept. The transaction index of the cleaned segment needs them."""

    def is_batch_void(self, header: BatchHeader) -> bool:
        self._advance_to(header.last_offset)
        if not header.is_transactional:
            return False
        self._met.add(header.producer_id)
        aborted = self._aborting.get(header.producer_id)
        return aborted is not None and header.base_offset < aborted.last_offset  # otherwise its marker was missed

    def is_marker_void(self, batch: Buffer, header: BatchHeader) -> bool:
        """Return whether the marker is void. Control batches that do not end a transaction are never void."""
        self._advance_to(header.last_offset)
        if header.record_count == 0:
            return True
        marker = read_marker(batch, header)
        if marker is None:
            return False
        was_met = header.producer_id in self._met
        self._met.discard(header.producer_id)
        aborted = self._aborting.pop(header.producer_id, None) if marker.type is ControlType.ABORT else None
        if aborted is not None and was_met:
            self.retained.append(aborted)
        return not was_met

    def take_retained(self) -> list[AbortedTxn]:
        """Return the transactions retained since the last call, for the index of one segment."""
        taken, self.retained = self.retained, []
        return taken

    def _advance_to(self, offset: int) -> None:
        while self._ahead and self._ahead[-1].first_offset <= offset:
            aborted = self._ahead.pop()
            self._aborting[aborted.producer_id] = aborted
