"""Checkpoint files: small text files that are always replaced as a whole.

    0                        version
    2                        number of lines that follow
    orders 0 4711            topic, partition, offset
    payments 3 12

`recovery-point-offset-checkpoint`        offset up to which a log is known to be on disk
`log-start-offset-checkpoint`             log start offset, if it lies inside the first segment
`replication-offset-checkpoint`           high watermarks
`cleaner-offset-checkpoint`               offset up to which a log has been compacted

A torn file is recognised by its number of lines. The atomic rename makes torn files unlikely.
"""

import logging
from collections.abc import Mapping

from sskafka.model.ids import TopicPartition
from sskafka.storage.disk import Disk, read_file, replace_file
from sskafka.storage.errors import CorruptFileError

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"

_log = logging.getLogger(__name__)
_VERSION = "0"


class OffsetCheckpoint:
    """One checkpoint file and its offsets by partition."""

    __slots__ = ("_disk", "_path", "offsets")

    def __init__(self, disk: Disk, path: str, *, is_read: bool = True) -> None:
        """Read the file. A file that cannot be parsed counts as missing: logs are then verified from their start."""
        self._disk = disk
        self._path = path
        self.offsets: Mapping[TopicPartition, int] = {}
        try:
            self.offsets = read_offsets(disk, path) if is_read else {}
        except CorruptFileError as error:
            _log.warning("%s; the checkpoint is ignored", error)

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the file, unless its content is the same already."""
        if offsets != self.offsets:
            write_offsets(self._disk, self._path, offsets)
            self.offsets = offsets


def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """Return the offsets in the file. A missing file counts as empty."""
    if not disk.exists(path):
        return {}
    return dict(_parse_offset(line, path) for line in read_lines(disk, path))


def write_offsets(disk: Disk, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    write_lines(disk, path, [f"{tp.topic} {tp.partition} {offset}" for tp, offset in offsets.items()])


def read_lines(disk: Disk, path: str) -> list[str]:
    """Return the lines after version and count, and check their number. An empty file has none."""
    content = read_file(disk, path)
    if not content:
        return []
    try:
        version, count, *lines, end = content.decode().split("\n")
        expected = int(count)
    except ValueError as error:
        raise CorruptFileError(f"{path} does not begin with a version and a count: {error}") from error
    if end:
        raise CorruptFileError(f"{path} ends in the middle of the line {end!r}")
    if version != _VERSION:
        raise CorruptFileError(f"{path} has version {version!r}, only {_VERSION} is known")
    if len(lines) != expected:
        raise CorruptFileError(f"{path} has {len(lines)} lines instead of {expected}")
    return lines


def write_lines(disk: Disk, path: str, lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in (_VERSION, str(len(lines)), *lines))
    replace_file(disk, path, text.encode())


def _parse_offset(line: str, path: str) -> tuple[TopicPartition, int]:
    try:
        topic, partition, offset = line.split(" ")
        return TopicPartition(topic, int(partition)), int(offset)
    except ValueError as error:
        raise CorruptFileError(f"{path} has the line {line!r}: {error}") from error
