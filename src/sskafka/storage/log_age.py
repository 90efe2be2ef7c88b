"""How new the content of a partition's directory is, by its files alone: to tell the newer one of two copies."""

import os
from contextlib import suppress
from typing import NamedTuple

from sskafka.records.batch import CorruptBatchError
from sskafka.storage.batch_walk import walk_headers
from sskafka.storage.disk import Disk
from sskafka.storage.segment import LOG_SUFFIX


class LogAge(NamedTuple):
    """Compared in this order: what a later leader wrote is newer, however short."""

    leader_epoch: int
    end_offset: int


def age_of_log(disk: Disk, directory: str) -> LogAge:
    names = sorted(entry.name for entry in disk.entries(directory) if entry.name.endswith(LOG_SUFFIX))
    for name in reversed(names):
        file = disk.open(os.path.join(directory, name))
        age = None
        with suppress(CorruptBatchError):  # a torn end
            for _, header in walk_headers(file, 0, file.size()):
                age = LogAge(header.leader_epoch, header.next_offset)
        if age is not None:
            return age
    return LogAge(-1, 0)
