"""Transactional ids of tasks. Each process that runs tasks has ids of its own, so nobody else ever initializes them: an
attempt that begins late cannot abort the one that took its place.

Ids are used again, because coordinators remember each of them for days. A process takes one of its ids again when
it writes a later batch of the same epoch: Spark begins a batch only when the one before is committed.
"""

import os
import uuid
from dataclasses import dataclass, field


@dataclass(slots=True)
class ProcessIds:
    """The ids of one process, by prefix and epoch."""

    name: str
    last_batches: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    """The batch that last used the first, second, ... id."""

    def next_id(self, prefix: str, epoch: int, batch: int) -> str:
        used = self.last_batches.setdefault((prefix, epoch), [])
        for number, last in enumerate(used):
            if last < batch:
                used[number] = batch
                return transactional_id(prefix, epoch, self.name, number)
        used.append(batch)
        return transactional_id(prefix, epoch, self.name, len(used) - 1)


def transactional_id(prefix: str, epoch: int, process: str, number: int) -> str:
    return f"{prefix}-{epoch}-{process}-{number}"


_ids: dict[int, ProcessIds] = {}


def ids_of_this_process() -> ProcessIds:
    """Spark forks its workers: what the parent had is not the child's."""
    pid = os.getpid()
    if pid not in _ids:
        _ids.clear()
        _ids[pid] = ProcessIds(uuid.uuid4().hex[:12])
    return _ids[pid]
