"""Repair what a check found: rebuild indexes and other files, truncate torn ends, remove useless files.

A partition is repaired by opening its log as after a crash (recovery/opening.py): every batch is verified again, the
log is truncated at the first invalid batch, and everything derived from the batches is rebuilt. This is done only if
the check saw that the truncation removes nothing readable, unless losing valid batches was explicitly allowed. Logs
with message formats 0 and 1 are left unchanged: recovery does not support them. Checkpoints that point beyond a log's
end are repaired last.
"""

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sskafka.model.ids import TopicPartition
from sskafka.storage.checkpoints import HIGH_WATERMARKS, RECOVERY_POINTS, read_offsets, write_offsets
from sskafka.storage.disk import Disk
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.recovery.opening import open_log
from sskafka.storage.synced_offset import read_synced_offset, write_synced_offset
from sskafka.storage.verification.findings import DirectoryReport, PartitionReport, Remedy
from sskafka.storage.verification.partition import CHECK_CONFIG

_MANUAL = "left unchanged: needs manual repair"


class Repair(NamedTuple):
    path: str
    text: str
    is_done: bool


def repair_directory(disk: Disk, report: DirectoryReport, now_ms: int, *, may_lose: bool = False) -> Iterator[Repair]:
    """Repair what can be repaired and yield each repair. The caller holds the directory's lock."""
    for finding in report.findings:
        if finding.remedy is Remedy.REMOVE:
            disk.remove(finding.path)
            yield Repair(finding.path, "removed; the broker works without it", True)
        elif finding.remedy is Remedy.MANUAL:
            yield Repair(finding.path, _MANUAL, False)
    ends: dict[TopicPartition, int] = {}
    for partition in report.partitions:
        refusal = _refusal(partition, may_lose)
        if refusal:
            yield Repair(os.path.join(report.path, partition.name), refusal, False)
        elif partition.needs(Remedy.REBUILD, Remedy.TRUNCATE, Remedy.DATA_LOSS):
            repair, ends[partition.topic_partition] = _recover(disk, report.path, partition, now_ms)
            yield repair
        else:
            ends[partition.topic_partition] = partition.end_offset
    for name in (RECOVERY_POINTS, HIGH_WATERMARKS):
        yield from _lower_checkpoint(disk, os.path.join(report.path, name), ends)
    disk.sync_directory(report.path)


def _refusal(report: PartitionReport, may_lose: bool) -> str:
    if report.needs(Remedy.MANUAL):
        return _MANUAL
    if report.has_old_formats and report.damages:
        return "left unchanged: it holds messages of an old format"
    if report.needs(Remedy.DATA_LOSS) and not may_lose:
        return "left unchanged: truncation would remove valid batches"
    return ""


def _recover(disk: Disk, path: str, report: PartitionReport, now_ms: int) -> tuple[Repair, int]:
    """Open the log as after a crash and close it. Return the outcome and the log end offset."""
    directory = os.path.join(path, report.name)
    before = _log_bytes(disk, directory)
    log = open_log(LogDirHealth(disk, path), directory, report.topic_partition, CHECK_CONFIG, now_ms=now_ms)
    log.close()
    if (read_synced_offset(disk, directory) or 0) > log.log_end_offset:
        write_synced_offset(disk, directory, log.log_end_offset, is_durable=True)
    lost = before - _log_bytes(disk, directory)
    cut = f"truncated by {lost} bytes, the log end offset is now {log.log_end_offset}; " if lost else ""
    return Repair(directory, f"{cut}indexes, epochs and snapshots rebuilt", True), log.log_end_offset


def _log_bytes(disk: Disk, directory: str) -> int:
    return sum(entry.size_bytes for entry in disk.entries(directory) if entry.name.endswith(".log"))


def _lower_checkpoint(disk: Disk, path: str, ends: Mapping[TopicPartition, int]) -> Iterator[Repair]:
    """Lower checkpointed offsets that lie beyond the ends of their logs."""
    offsets = read_offsets(disk, path)
    beyond = {
        partition: ends[partition] for partition, offset in offsets.items() if offset > ends.get(partition, offset)
    }
    if beyond:
        write_offsets(disk, path, {**offsets, **beyond})
        words = ", ".join(f"{partition} to {end}" for partition, end in beyond.items())
        yield Repair(path, f"lowered: {words}", True)
