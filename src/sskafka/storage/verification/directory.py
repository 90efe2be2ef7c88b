"""Check a whole data directory while no broker uses it. `verify_directory` reports findings and changes nothing.

    meta.properties, .kafka_cleanshutdown, the three offset checkpoints      here
    each partition's directory                                               partition.py

The directory's lock is held during the check, as a broker would hold it, so that nothing is written in the meantime.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from sskafka.model.ids import TopicPartition
from sskafka.storage import clean_shutdown, meta_properties
from sskafka.storage.broker_directory import LOCK_FILE, lock_directory
from sskafka.storage.checkpoints import HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS, read_offsets
from sskafka.storage.disk import Disk, OsDisk, OsFile, read_file
from sskafka.storage.errors import CorruptFileError, LogDirectoryError
from sskafka.storage.meta_properties import MetaProperties, read_meta_properties
from sskafka.storage.partition_directory import parse_directory_name
from sskafka.storage.verification.findings import DirectoryReport, Finding, PartitionReport, Remedy
from sskafka.storage.verification.partition import check_partition

CHECKPOINTS = {
    RECOVERY_POINTS: "is on disk up to",
    LOG_START_OFFSETS: "begins at",
    HIGH_WATERMARKS: "was committed up to",
}


class ReadOnlyDisk(OsDisk):
    """Opens files read-only: a check cannot change anything, and read-only directories can be checked too."""

    def open(self, path: str, *, create: bool = False) -> OsFile:
        assert not create, "a check makes no files"
        return OsFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))


@contextmanager
def held(path: str, *, for_writing: bool = False) -> Iterator[None]:
    """Hold the lock of a directory. Raise LogDirectoryError if a broker holds it.

    Without a lock file no broker is running; a read-only check does not create one."""
    if not os.path.isdir(path):
        raise LogDirectoryError(f"{path} is not a directory")
    if not for_writing and not os.path.exists(os.path.join(path, LOCK_FILE)):
        yield
        return
    try:
        lock = lock_directory(OsDisk(), path)
    except OSError as error:
        raise LogDirectoryError(f"log directory {path} cannot be used: {error.strerror or error}") from error
    try:
        yield
    finally:
        lock.release()


def verify_directory(
    path: str, on_partition: Callable[[PartitionReport], None] = lambda _report: None
) -> DirectoryReport:
    """Check everything in a log directory. The callback is called after each partition."""
    disk = ReadOnlyDisk()
    report = DirectoryReport(path)
    meta = _check_meta_properties(disk, report)
    _check_clean_mark(disk, report)
    ends: dict[TopicPartition, int] = {}
    for entry in sorted(disk.entries(path)):
        partition = parse_directory_name(entry.name, meta.partition_base) if entry.is_directory else None
        if partition is not None:
            found = check_partition(disk, os.path.join(path, entry.name), partition)
            report.partitions.append(found)
            if not found.needs(Remedy.DATA_LOSS):
                ends[partition] = found.end_offset
            on_partition(found)
    for name in CHECKPOINTS:
        _check_checkpoint(disk, report, name, ends)
    return report


def _check_meta_properties(disk: Disk, report: DirectoryReport) -> MetaProperties:
    path = os.path.join(report.path, meta_properties.FILE_NAME)
    try:
        meta = read_meta_properties(disk, report.path)
    except CorruptFileError as error:
        report.findings.append(Finding(path, str(error), Remedy.MANUAL))
        meta = None
    else:
        if meta is None:
            report.findings.append(Finding(path, "missing: the directory is not formatted", Remedy.MANUAL))
    return meta or MetaProperties(None, None)


def _check_clean_mark(disk: Disk, report: DirectoryReport) -> None:
    path = os.path.join(report.path, clean_shutdown.FILE_NAME)
    if not disk.exists(path):
        text = "missing: the last shutdown was not clean, so expect torn ends and outdated indexes"
        report.findings.append(Finding(path, text, Remedy.NONE_NEEDED))
        return
    content = read_file(disk, path)
    try:
        if content:  # older brokers leave it empty
            json.loads(content)
    except ValueError as error:
        report.findings.append(Finding(path, f"it cannot be read: {error}", Remedy.REMOVE))


def _check_checkpoint(disk: Disk, report: DirectoryReport, name: str, ends: Mapping[TopicPartition, int]) -> None:
    path = os.path.join(report.path, name)
    try:
        offsets = read_offsets(disk, path)
    except CorruptFileError as error:
        report.findings.append(Finding(path, str(error), Remedy.REMOVE))
        return
    for partition, offset in offsets.items():
        end_offset = ends.get(partition)
        if end_offset is not None and offset > end_offset:
            text = f"{partition} {CHECKPOINTS[name]} {offset}, but its log ends at {end_offset}: records are lost"
            remedy = Remedy.MANUAL if name == LOG_START_OFFSETS else Remedy.REBUILD
            report.findings.append(Finding(path, text, remedy))
