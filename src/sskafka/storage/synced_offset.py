"""`synced-offset`: the offset up to which the metadata log was known to be on this node's disk.

A node acknowledges metadata after the sync, so a log that ends earlier when it is opened has lost records that may be
committed. The file is written after each sync without a sync of its own: after a power failure it may be old or torn,
and then it promises less, never more. Only before an intended truncation the lower offset must be made durable first.
"""

import os

from sskafka.storage.disk import Disk, read_file, replace_file

FILE_NAME = "synced-offset"


def read_synced_offset(disk: Disk, directory: str) -> int | None:
    """Return the offset, or None if the file is missing or torn."""
    path = os.path.join(directory, FILE_NAME)
    if not disk.exists(path):
        return None
    text = bytes(read_file(disk, path)).decode("ascii", errors="replace")
    return int(text) if text.endswith("\n") and text.strip().isdecimal() else None


def write_synced_offset(disk: Disk, directory: str, offset: int, *, is_durable: bool = False) -> None:
    replace_file(disk, os.path.join(directory, FILE_NAME), b"%d\n" % offset, sync=is_durable)
