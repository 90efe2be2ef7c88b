"""`synced-offset`: up to where the metadata log was surely on this node's disk.

A node acknowledges metadata once it is synced, so a log that ends earlier when it is opened has lost records that may
be committed. The file follows each sync without a sync of its own: after a power cut it may be old or torn, and then
it promises less, never more. Only where the log is cut on purpose the lower offset must be durable first.
"""

import os

from sskafka.storage.disk import Disk, read_file, replace_file

FILE_NAME = "synced-offset"


def read_synced_offset(disk: Disk, directory: str) -> int | None:
    """None when the file is not there or torn: nothing is known."""
    path = os.path.join(directory, FILE_NAME)
    if not disk.exists(path):
        return None
    text = bytes(read_file(disk, path)).decode("ascii", errors="replace")
    return int(text) if text.endswith("\n") and text.strip().isdecimal() else None


def write_synced_offset(disk: Disk, directory: str, offset: int, *, is_durable: bool = False) -> None:
    replace_file(disk, os.path.join(directory, FILE_NAME), b"%d\n" % offset, sync=is_durable)
