"""`scrub-progress`: how far the verification of all logs has come, so that a restart does not begin again.

    1                       version of the format
    1763370000000           when the current round began, in milliseconds
    orders 3 4711           the last segment that was verified: topic, partition and base offset; missing between rounds

The file is not synced: if it is lost, a round is repeated or postponed.
"""

import os
from typing import NamedTuple

from sskafka.model.ids import TopicPartition
from sskafka.storage.disk import Disk, read_file, replace_file

FILE_NAME = "scrub-progress"
_VERSION = "1"


class ScrubProgress(NamedTuple):
    round_began_ms: int
    partition: TopicPartition | None = None
    """None between two rounds."""
    base_offset: int = -1

    def is_behind(self, partition: TopicPartition, base_offset: int) -> bool:
        """Return whether a segment is still to be verified in this round. Logs are verified in the order of names."""
        return self.partition is None or (self.partition, self.base_offset) < (partition, base_offset)


def read_scrub_progress(disk: Disk, directory: str) -> ScrubProgress | None:
    """Return the progress, or None if the file is missing or unreadable."""
    path = os.path.join(directory, FILE_NAME)
    try:
        lines = bytes(read_file(disk, path)).decode().splitlines() if disk.exists(path) else []
        if lines[:1] != [_VERSION]:
            return None
        if len(lines) == 2:
            return ScrubProgress(int(lines[1]))
        topic, partition, base_offset = lines[2].rsplit(" ", 2)
        return ScrubProgress(int(lines[1]), TopicPartition(topic, int(partition)), int(base_offset))
    except (OSError, ValueError, IndexError):
        return None


def write_scrub_progress(disk: Disk, directory: str, progress: ScrubProgress) -> None:
    lines = [_VERSION, str(progress.round_began_ms)]
    if progress.partition is not None:
        lines.append(f"{progress.partition.topic} {progress.partition.partition} {progress.base_offset}")
    text = "".join(f"{line}\n" for line in lines)
    replace_file(disk, os.path.join(directory, FILE_NAME), text.encode(), sync=False)
