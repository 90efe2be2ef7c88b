"""`.kafka_cleanshutdown`: written by a broker after it has closed all its logs, removed at the next start.

{"version":0,"brokerEpoch":17}
The file must be removed before anything is written. Otherwise a later crash would look like a clean shutdown.
"""

import json
import os

from sskafka.storage.disk import Disk, read_file, replace_file

FILE_NAME = ".kafka_cleanshutdown"
NO_BROKER_EPOCH = -1


def write_clean_shutdown_file(disk: Disk, directory: str, broker_epoch: int) -> None:
    text = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    replace_file(disk, os.path.join(directory, FILE_NAME), text.encode())


def remove_clean_shutdown_file(disk: Disk, directory: str) -> int | None:
    """Remove the file and return the broker epoch of the clean shutdown.

    Return -1 if the file does not name an epoch, None after an unclean shutdown."""
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
