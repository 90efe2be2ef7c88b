"""`.kafka_cleanshutdown`: left by a broker that closed all its logs, taken away at the next start.

{"version":0,"brokerEpoch":17}

It must be gone before anything is written, or a crash later would pass for a clean stop.
"""

import json
import os

from sskafka.storage.disk import Disk, read_file, replace_file

FILE_NAME = ".kafka_cleanshutdown"
NO_BROKER_EPOCH = -1


def mark_clean(disk: Disk, directory: str, broker_epoch: int) -> None:
    text = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    replace_file(disk, os.path.join(directory, FILE_NAME), text.encode())


def take_clean_mark(disk: Disk, directory: str) -> int | None:
    """The broker's epoch at its clean stop, -1 when the mark does not say; None after an unclean one."""
    path = os.path.join(directory, FILE_NAME)
    if not disk.exists(path):
        return None
    content = read_file(disk, path)
    disk.remove(path)
    disk.sync_directory(directory)
    try:
        return int(json.loads(content)["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        return NO_BROKER_EPOCH
