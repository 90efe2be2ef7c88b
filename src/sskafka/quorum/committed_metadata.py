"""The cluster image of the committed part of the metadata log, on every node.

    snapshot -> records below the high watermark, as it moves -> image and delta -> listeners

The active controller has already replayed its own records into a draft; `adopt` takes over that draft once its records
are committed. All other nodes read the records from the log.
"""

import logging
from collections.abc import Callable

from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.features import ACCEPTED_FEATURES
from sskafka.metadata.image import ClusterImage, changes_between
from sskafka.metadata.record_codec import UnknownRecordError, decode_record
from sskafka.metadata.transactions import Replayer
from sskafka.quorum.metadata_log import MetadataLog
from sskafka.quorum.metadata_opening import MetadataError
from sskafka.quorum.snapshots import StoredRecord
from sskafka.wire.codec import MalformedMessageError

_log = logging.getLogger(__name__)

Listener = Callable[[MetadataDelta, ClusterImage], None]


class CommittedMetadata:
    def __init__(self, log: MetadataLog) -> None:
        """Start with the newest snapshot. Raises MetadataError if it cannot be used."""
        self._log = log
        self._listeners: list[Listener] = []
        self.last_record_ms = 0
        self.skipped_records = 0
        """Records of types that this software does not know."""
        self.replayed_bytes = 0
        """Bytes of the log that were replayed since this node started."""
        self.image, self._replayer = self._load_snapshot()

    @property
    def next_offset(self) -> int:
        return self.image.next_offset

    @property
    def in_transaction(self) -> bool:
        return self._replayer.in_transaction

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` at once with the whole image, and then after every change."""
        self._listeners.append(listener)
        listener(MetadataDelta.from_empty(self.image), self.image)

    # ---- new images

    def advance_to(self, end_offset: int) -> None:
        """Replay the records of the log below `end_offset`."""
        if end_offset <= self.next_offset:
            return
        draft, delta = self.image.fork(), MetadataDelta()
        self._replayer.switch_to(draft, delta)
        for stored in self._log.records(self.next_offset, end_offset):
            self._replay(stored, delta)
            self.replayed_bytes += len(stored.record.value or b"")
        self._publish(draft, delta, end_offset)

    def adopt(self, image: ClusterImage, delta: MetadataDelta, size_bytes: int, written_ms: int) -> None:
        """Take over the active controller's draft, whose records, of that size, are now committed."""
        assert image.next_offset >= self.next_offset, "images only move forward"
        self._replayer = Replayer(image, delta)  # a controller leaves no transaction open
        self.replayed_bytes += size_bytes
        self.last_record_ms = written_ms
        self._publish(image, delta, image.next_offset)

    def load_snapshot(self) -> None:
        """Load the snapshot that has replaced the log."""
        image, self._replayer = self._load_snapshot()
        self._publish(image, changes_between(self.image, image), image.next_offset)

    def _load_snapshot(self) -> tuple[ClusterImage, Replayer]:
        image, delta = ClusterImage(), MetadataDelta()
        self._replayer = Replayer(image, delta)
        for stored in self._log.snapshot_records():
            self._replay(stored, delta)
        latest = self._log.latest_snapshot_id()
        image.next_offset = latest.offset if latest else self._log.start_offset
        self._check_features(image)
        return image, self._replayer

    def _publish(self, image: ClusterImage, delta: MetadataDelta, next_offset: int) -> None:
        image.next_offset = next_offset
        if delta.features_changed:
            self._check_features(image)
        self.image = image
        for listener in self._listeners:
            listener(delta, image)

    # ---- records

    def _replay(self, stored: StoredRecord, delta: MetadataDelta) -> None:
        record = stored.record
        self.last_record_ms = record.timestamp
        if stored.is_control:
            return
        try:
            message = decode_record(record.value or b"")
        except UnknownRecordError as error:
            _log.warning("skipped at offset %d of the metadata log: %s", record.offset, error)
            delta.skipped.append(str(error))
            self.skipped_records += 1
            return
        except MalformedMessageError as error:
            raise MetadataError(f"offset {record.offset} of the metadata log is damaged: {error}") from error
        try:
            self._replayer.replay(message)
        except (KeyError, AssertionError) as error:
            problem = f"offset {record.offset} of the metadata log does not fit: {message!r}"
            raise MetadataError(problem) from error

    def _check_features(self, image: ClusterImage) -> None:
        for name, level in image.features.items():
            supported = ACCEPTED_FEATURES.get(name)
            if supported is None or not supported.minimum <= level <= supported.maximum:
                can = f"{supported.minimum} to {supported.maximum}" if supported else "none"
                where = self._log.directory
                raise MetadataError(f"{where} was written with {name} {level}; this software supports {can}")
