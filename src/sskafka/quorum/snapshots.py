"""Snapshots of the metadata: the whole image as records, so that the log before it need not be read.

    <offset, 20 digits>-<epoch, 10 digits>.checkpoint   in __cluster_metadata-0: everything before that offset
    bootstrap.checkpoint                                beside it: the first records of a new cluster's log

Each is a sequence of batches: a header control record, metadata records, a footer control record. A snapshot is written
under a temporary name first, so a file with a final name is complete.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sskafka.metadata.record_codec import encode_record
from sskafka.metadata.records import MetadataRecord
from sskafka.model.buffers import Buffer
from sskafka.quorum.control_batches import QuorumSetup, control_batch
from sskafka.raft.log_view import SnapshotId
from sskafka.records.batch import BatchHeader, CorruptBatchError, crc_matches, iter_headers
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.control import ControlType, read_control_type
from sskafka.records.record import Record, decode_records
from sskafka.storage.disk import Disk, read_file, replace_file
from sskafka.storage.errors import CorruptFileError
from sskafka.wire.messages.control_records import SnapshotFooterRecord, SnapshotHeaderRecord

BOOTSTRAP_FILE = "bootstrap.checkpoint"
UNFINISHED_SUFFIX = ".checkpoint.part"
DAMAGED_SUFFIX = ".damaged"
_BATCH_RECORDS_MAX = 256
_BATCH_BYTES_MAX = 1024 * 1024
"""A batch of a snapshot is larger only if a single record is."""
_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class StoredRecord(NamedTuple):
    record: Record
    batch: BatchHeader

    @property
    def is_control(self) -> bool:
        return self.batch.is_control


def snapshot_path(directory: str, snapshot_id: SnapshotId) -> str:
    return os.path.join(directory, f"{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}.checkpoint")


def list_snapshots(disk: Disk, directory: str) -> dict[SnapshotId, int]:
    """Return the sizes of the snapshots in a directory, oldest first. Unfinished files are removed."""
    found: dict[SnapshotId, int] = {}
    for entry in sorted(disk.entries(directory)):
        match = _NAME.fullmatch(entry.name)
        if match is not None:
            found[SnapshotId(int(match[1]), int(match[2]))] = entry.size_bytes
        elif entry.name.endswith(UNFINISHED_SUFFIX):
            disk.remove(os.path.join(directory, entry.name))
    return found


def check_snapshot(disk: Disk, path: str) -> None:
    """Raise CorruptFileError unless all batches are intact and the last one has the footer."""
    try:
        content = read_file(disk, path)
        last: StoredRecord | None = None
        for position, header in iter_headers(content):
            if not crc_matches(content, header, position):
                raise CorruptBatchError(f"the batch at byte {position} does not match its checksum")
            if header.is_control:
                *_, last = _records_of(content, position, header)
    except (CorruptBatchError, OSError) as error:
        raise CorruptFileError(f"{path} is damaged: {error}") from error
    if last is None or read_control_type(last.record.key) != ControlType.SNAPSHOT_FOOTER:
        raise CorruptFileError(f"{path} is damaged: its end is missing")


def set_snapshot_aside(disk: Disk, path: str) -> None:
    """Rename a snapshot that cannot be used, so that an operator can inspect it."""
    disk.rename(path, path + DAMAGED_SUFFIX)


def read_snapshot(disk: Disk, path: str) -> list[StoredRecord]:
    try:
        return list(stored_records(read_file(disk, path)))
    except CorruptBatchError as error:
        raise CorruptFileError(f"{path} is damaged: {error}") from error


def write_bootstrap(disk: Disk, directory: str, records: Sequence[MetadataRecord], now_ms: int) -> None:
    header = control_batch([SnapshotHeaderRecord()], now_ms=now_ms)
    body = [NewRecord(value=encode_record(record), timestamp=now_ms) for record in records]
    footer = control_batch([SnapshotFooterRecord()], now_ms=now_ms, base_offset=1 + len(records))
    replace_file(
        disk,
        os.path.join(directory, BOOTSTRAP_FILE),
        bytes(header + build_batch(body, base_offset=1, leader_epoch=0) + footer),
    )


def snapshot_batches(
    records: Iterable[MetadataRecord], metadata_version: int, setup: QuorumSetup, epoch: int, last_ms: int, now_ms: int
) -> Iterator[bytearray]:
    """Yield the batches of a snapshot, so that the caller can pause in between. `last_ms`: time of the last record."""
    opening = [SnapshotHeaderRecord(0, last_ms), *setup.records()]
    yield control_batch(opening, now_ms=now_ms, leader_epoch=epoch)
    offset = len(opening)
    encoded = (NewRecord(value=encode_record(record, metadata_version), timestamp=now_ms) for record in records)
    for batch in _in_batches(encoded):
        yield build_batch(batch, base_offset=offset, leader_epoch=epoch)
        offset += len(batch)
    yield control_batch([SnapshotFooterRecord()], now_ms=now_ms, base_offset=offset, leader_epoch=epoch)


def _in_batches(records: Iterable[NewRecord]) -> Iterator[list[NewRecord]]:
    batch: list[NewRecord] = []
    size_bytes = 0
    for record in records:
        record_bytes = len(record.value or b"")
        if batch and (len(batch) == _BATCH_RECORDS_MAX or size_bytes + record_bytes > _BATCH_BYTES_MAX):
            yield batch
            batch, size_bytes = [], 0
        batch.append(record)
        size_bytes += record_bytes
    if batch:
        yield batch


def stored_records(batches: Buffer) -> Iterator[StoredRecord]:
    """Yield the records of complete batches; raises CorruptBatchError for a damaged batch."""
    for position, header in iter_headers(batches):
        yield from _records_of(batches, position, header)


def _records_of(batches: Buffer, position: int, header: BatchHeader) -> Iterator[StoredRecord]:
    if not crc_matches(batches, header, position):
        raise CorruptBatchError(f"the batch at offset {header.base_offset} does not match its checksum")
    for record in decode_records(batches, header, position):
        yield StoredRecord(record, header)
