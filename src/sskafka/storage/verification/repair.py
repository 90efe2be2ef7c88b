"""Mending what a check found: indexes and other files made anew, torn ends cut, worthless files removed.

A partition is mended by opening its log as after a crash (recovery.py): every batch is verified once more, the log is
cut at the first bad one, and what follows from the batches is made anew. That is only done where the check saw that the
cut takes nothing that could still be read, unless losing good batches was allowed in so many words. Logs with messages
of formats 0 and 1 are left alone: recovery does not know them. Checkpoints that point beyond a log's end come last.
"""

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sskafka.model.ids import TopicPartition
from sskafka.storage.checkpoints import HIGH_WATERMARKS, RECOVERY_POINTS, read_offsets, write_offsets
from sskafka.storage.disk import Disk
from sskafka.storage.log_directory import LogDirectory
from sskafka.storage.recovery.opening import open_log
from sskafka.storage.synced_offset import read_synced_offset, write_synced_offset
from sskafka.storage.verification.findings import DirectoryReport, PartitionReport, Remedy
from sskafka.storage.verification.partition import CHECK_CONFIG

_BY_HAND = "left as it is: this has to be decided by hand"


class Repair(NamedTuple):
    path: str
    text: str
    is_done: bool


def repair_directory(disk: Disk, report: DirectoryReport, now_ms: int, *, may_lose: bool = False) -> Iterator[Repair]:
    """Mends what can be mended, one thing after another. The caller holds the directory's lock."""
    for finding in report.findings:
        if finding.remedy is Remedy.REMOVE:
            disk.remove(finding.path)
            yield Repair(finding.path, "removed; the broker does without it", True)
        elif finding.remedy is Remedy.BY_HAND:
            yield Repair(finding.path, _BY_HAND, False)
    ends: dict[TopicPartition, int] = {}
    for partition in report.partitions:
        refusal = _refusal(partition, may_lose)
        if refusal:
            yield Repair(os.path.join(report.path, partition.name), refusal, False)
        elif partition.needs(Remedy.REMAKE, Remedy.CUT, Remedy.LOSE):
            repair, ends[partition.topic_partition] = _mend(disk, report.path, partition, now_ms)
            yield repair
        else:
            ends[partition.topic_partition] = partition.end_offset
    for name in (RECOVERY_POINTS, HIGH_WATERMARKS):
        yield from _pull_back(disk, os.path.join(report.path, name), ends)
    disk.sync_directory(report.path)


def _refusal(report: PartitionReport, may_lose: bool) -> str:
    if report.needs(Remedy.BY_HAND):
        return _BY_HAND
    if report.has_old_formats and report.damages:
        return "left as it is: it holds messages of an old format"
    if report.needs(Remedy.LOSE) and not may_lose:
        return "left as it is: a cut would take good batches with it"
    return ""


def _mend(disk: Disk, path: str, report: PartitionReport, now_ms: int) -> tuple[Repair, int]:
    """Opens the log as after a crash and closes it; what has become of it, and its end."""
    directory = os.path.join(path, report.name)
    before = _log_bytes(disk, directory)
    log = open_log(LogDirectory(disk, path), directory, report.topic_partition, CHECK_CONFIG, now_ms=now_ms)
    log.close()
    if (read_synced_offset(disk, directory) or 0) > log.log_end_offset:
        write_synced_offset(disk, directory, log.log_end_offset, is_durable=True)
    lost = before - _log_bytes(disk, directory)
    cut = f"cut by {lost} bytes, it ends at offset {log.log_end_offset} now; " if lost else ""
    return Repair(directory, f"{cut}indexes, epochs and snapshots made anew", True), log.log_end_offset


def _log_bytes(disk: Disk, directory: str) -> int:
    return sum(entry.size_bytes for entry in disk.entries(directory) if entry.name.endswith(".log"))


def _pull_back(disk: Disk, path: str, ends: Mapping[TopicPartition, int]) -> Iterator[Repair]:
    """Offsets in a checkpoint that lie beyond the ends of their logs."""
    offsets = read_offsets(disk, path)
    beyond = {
        partition: ends[partition] for partition, offset in offsets.items() if offset > ends.get(partition, offset)
    }
    if beyond:
        write_offsets(disk, path, {**offsets, **beyond})
        words = ", ".join(f"{partition} to {end}" for partition, end in beyond.items())
        yield Repair(path, f"pulled back: {words}", True)
