"""Metadata transactions: the records between Begin and End are applied together or, after Abort, not at all.

A controller that fails during a transaction leaves it open; the next controller aborts it.
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
    """Replays records into an image; buffers the records of an open transaction until it ends."""

    def __init__(self, image: ClusterImage, delta: MetadataDelta) -> None:
        self._image = image
        self._delta = delta
        self._held: list[MetadataRecord] | None = None

    def switch_to(self, image: ClusterImage, delta: MetadataDelta) -> None:
        """Replay the following records into this image and delta; an open transaction stays open."""
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
