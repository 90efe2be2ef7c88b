"""The age of a partition directory's content, judged by its files alone. It tells which of two copies is newer."""

import os
from contextlib import suppress
from typing import NamedTuple

from sskafka.records.batch import CorruptBatchError
from sskafka.storage.batch_walk import walk_headers
from sskafka.storage.disk import Disk
from sskafka.storage.segment import LOG_SUFFIX


class LogAge(NamedTuple):
    """Compared in this order: data of a later leader epoch is newer, however short the log is."""

    leader_epoch: int
    end_offset: int


def age_of_log(disk: Disk, directory: str) -> LogAge:
    names = sorted(entry.name for entry in disk.entries(directory) if entry.name.endswith(LOG_SUFFIX))
    for name in reversed(names):
        file = disk.open(os.path.join(directory, name))
        age = None
        with suppress(CorruptBatchError):  # torn end
            for _, header in walk_headers(file, 0, file.size()):
                age = LogAge(header.leader_epoch, header.next_offset)
        if age is not None:
            return age
    return LogAge(-1, 0)
