"""Reading the metadata log: the newest snapshot, then everything behind it, replayed into an image."""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.features import SUPPORTED_FEATURES
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.record_codec import UnknownRecordError, decode_record
from sskafka.metadata.transactions import Replayer
from sskafka.model.settings import Settings
from sskafka.quorum.control_batches import QuorumSetup
from sskafka.quorum.snapshots import SnapshotId, StoredRecord, latest_snapshot, read_snapshot, stored_records
from sskafka.records.batch import HEADER_BYTES, CorruptBatchError, read_offset_and_size
from sskafka.storage.disk import Disk
from sskafka.storage.errors import CorruptFileError
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.wire.codec import MalformedMessageError

_log = logging.getLogger(__name__)
_READ_BYTES = 4 * 1024 * 1024
KEEP_FOR_EVER = -1


class MetadataError(Exception):
    """The metadata log cannot be used: damaged, or written by something newer."""


@dataclass(slots=True)
class LoadedMetadata:
    image: ClusterImage = field(default_factory=ClusterImage)
    delta: MetadataDelta = field(default_factory=MetadataDelta)
    setup: QuorumSetup = field(default_factory=QuorumSetup)
    in_transaction: bool = False
    """A controller stopped in the middle of a metadata transaction."""


def metadata_log_config(settings: Settings) -> LogConfig:
    return LogConfig(
        segment_bytes=settings["metadata.log.segment.bytes"],
        segment_ms=settings["metadata.log.segment.ms"],
        retention_ms=KEEP_FOR_EVER,
        retention_bytes=KEEP_FOR_EVER,
    )


def load_metadata(disk: Disk, log: Log) -> LoadedMetadata:
    loaded = LoadedMetadata()
    replayer = Replayer(loaded.image, loaded.delta)
    snapshot = latest_snapshot(disk, log.directory)
    _check_no_gap(log, snapshot)
    try:
        if snapshot is not None:
            for stored in read_snapshot(disk, os.path.join(log.directory, snapshot.file_name)):
                _replay(stored, loaded, replayer, from_log=False)
        for stored in _log_records(log, snapshot.end_offset if snapshot else log.log_start_offset):
            _replay(stored, loaded, replayer, from_log=True)
    except (CorruptBatchError, CorruptFileError, MalformedMessageError) as error:
        raise MetadataError(f"the metadata in {log.directory} is damaged: {error}") from error
    loaded.in_transaction = replayer.in_transaction
    loaded.image.next_offset = log.log_end_offset
    _check_features(loaded.image, log.directory)
    return loaded


def _check_no_gap(log: Log, snapshot: SnapshotId | None) -> None:
    covered = snapshot.end_offset if snapshot else 0
    if log.log_start_offset > covered:
        message = f"the metadata log in {log.directory} begins at {log.log_start_offset}, and no snapshot reaches there"
        raise MetadataError(message)


def _log_records(log: Log, offset: int) -> Iterator[StoredRecord]:
    while offset < log.log_end_offset:
        chunk = b"".join(bytes(part.read()) for part in log.read(offset, _READ_BYTES, log.log_end_offset))
        whole = _whole_batches(chunk)
        assert whole, "the first batch is always whole"
        for stored in stored_records(memoryview(chunk)[:whole]):
            if stored.record.offset >= offset:
                yield stored
                offset = stored.record.offset + 1


def _whole_batches(chunk: bytes) -> int:
    """How many bytes of `chunk` are whole batches."""
    end = 0
    while len(chunk) - end >= HEADER_BYTES:
        _, size_bytes = read_offset_and_size(chunk, end)
        if size_bytes < HEADER_BYTES or end + size_bytes > len(chunk):
            break
        end += size_bytes
    return end


def _replay(stored: StoredRecord, loaded: LoadedMetadata, replayer: Replayer, *, from_log: bool) -> None:
    record, is_control = stored
    if is_control:
        loaded.setup.replay(record, from_log=from_log)
        return
    try:
        message = decode_record(record.value or b"")
    except UnknownRecordError as error:
        _log.warning("skipped at offset %d of the metadata log: %s", record.offset, error)
        loaded.delta.skipped.append(str(error))
        return
    try:
        replayer.replay(message)
    except (KeyError, AssertionError) as error:
        problem = f"offset {record.offset} of the metadata log does not fit: {message!r}"
        raise MetadataError(problem) from error


def _check_features(image: ClusterImage, directory: str) -> None:
    for name, level in image.features.items():
        supported = SUPPORTED_FEATURES.get(name)
        if supported is None or not supported.minimum <= level <= supported.maximum:
            can = f"{supported.minimum} to {supported.maximum}" if supported else "none"
            raise MetadataError(f"{directory} was written with {name} {level}; this software supports {can}")
