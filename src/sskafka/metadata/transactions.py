"""Metadata transactions: records between Begin and End count together or, after Abort, not at all.

A controller that stopped in the middle leaves a transaction open; the next one aborts it.
"""

from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
)


class Replayer:
    """Replays a log, record by record, into an image; holds back what an open transaction may yet withdraw."""

    def __init__(self, image: ClusterImage, delta: MetadataDelta) -> None:
        self._image = image
        self._delta = delta
        self._held: list[MetadataRecord] | None = None

    def go_on_with(self, image: ClusterImage, delta: MetadataDelta) -> None:
        """What comes next is replayed into these; an open transaction stays open."""
        self._image = image
        self._delta = delta

    @property
    def in_transaction(self) -> bool:
        return self._held is not None

    def replay(self, record: MetadataRecord) -> None:
        match record:
            case BeginTransactionRecord():
                self._held = []
            case EndTransactionRecord():
                held, self._held = self._held or [], None
                for earlier in held:
                    self._image.replay(earlier, self._delta)
            case AbortTransactionRecord():
                self._held = None
            case _ if self._held is not None:
                self._held.append(record)
            case _:
                self._image.replay(record, self._delta)
